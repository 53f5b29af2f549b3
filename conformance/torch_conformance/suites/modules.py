# conformance/torch_conformance/suites/modules.py: the aspects of module_db's entries.
"""A module is built on the CPU and copied to the device, so both have the same parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.cells import cases, registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.suites import autocast, errors
from torch_conformance.suites.operators import gradients
from torch_conformance.suites.sample_loop import (
    Home,
    Place,
    all_samples,
    at_home,
    is_random,
    require,
    seed,
)
from torch_conformance.tensors import compare, samples
from torch_conformance.tensors.samples import Carrier


class Example:
    """One module with one input, in training or evaluation mode."""

    def __init__(self, info: Any, given: Any, dtype: torch.dtype, training: bool) -> None:
        self.given, self.dtype = given, dtype
        self.training = training
        made = given.constructor_input
        seed()
        self.module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
        if info.is_lazy:
            forward = given.forward_input
            self.module(*copy.deepcopy(forward.args), **copy.deepcopy(forward.kwargs))

    def summary(self) -> str:
        return f"{self.given.desc or 'default'}, {'training' if self.training else 'evaluation'}"

    def run(self, carrier: Carrier) -> Any:
        """(module's outputs, module) on the carrier's device."""
        module, inputs = self.placed(carrier)
        seed()
        return module(*inputs[0], **inputs[1])

    def placed(self, carrier: Carrier) -> tuple[Any, Any]:
        module = copy.deepcopy(self.module).to(carrier.device)
        forward = self.given.forward_input
        return module, carrier((forward.args, forward.kwargs))


class Case:
    """The examples of one entry in one dtype."""

    def __init__(self, session: Session, cell: Cell, info: Any) -> None:
        self.session, self.cell, self.info = session, cell, info
        self.dtype = getattr(torch, cell.dtype)
        self.allowed = session.tolerances(info)

    def examples(self, requires_grad: bool = False) -> list[Example]:
        found = []
        for training in (True, False) if self.info.train_and_eval_differ else (True,):
            seed()
            try:
                inputs = self.info.module_inputs_func(
                    self.info, device="cpu", dtype=self.dtype, requires_grad=requires_grad,
                    training=training,
                )  # fmt: skip
                found += [Example(self.info, i, self.dtype, training) for i in inputs
                          if i.forward_input is not None]  # fmt: skip
            except Exception as error:
                raise NotApplicable(f"upstream's samples cannot be made: {error}") from error
        return found

    def settle(self, actual: Any, expected: Any, again: Callable[[bool], Any]) -> None:
        """Compares; again(exact) computes once more at home, in float64 for exact."""
        text = compare.difference(actual, expected, self.allowed)
        if text is None:
            return
        if is_random(lambda: again(False)):
            self.session.left_open("random values: only shapes and dtypes are compared")
            require(compare.metadata_difference(actual, expected))
            return
        seed()
        exact = at_home(lambda: again(True))
        if exact.error or not compare.no_farther(actual, expected, exact.value, self.allowed):
            require(text)


def used(example: Example, home: Carrier, exact: bool, use: Callable[[Any, Any], Any]) -> Any:
    """What use makes of the example's module and inputs, in double precision for exact."""
    module, inputs = example.placed(home)
    if exact:
        wide = torch.complex128 if example.dtype.is_complex else torch.float64
        module, inputs = module.to(wide), samples.upcast(inputs)
    return use(module, inputs)


def _compared(case: Case, use: Callable[[Any, Any], Any], grad: bool, carrier: Carrier) -> None:
    home = Carrier(torch.device("cpu"))

    def check(place: Place, number: int, example: Example) -> None:
        expected = at_home(lambda: used(example, home, False, use)).get()
        forward = example.given.forward_input
        case.session.expects(expected, (forward.args, forward.kwargs))
        seed()
        with place.surrounding():
            module, inputs = example.placed(place.carrier)
            seed()
            actual = use(module, inputs)
        case.settle(actual, expected, lambda exact: used(example, home, exact, use))

    all_samples(case.session, case.cell, case.examples(grad), check, carrier)


def _outputs(module: Any, inputs: Any) -> Any:
    """What a module gives, and its buffers afterwards (running statistics)."""
    return [module(*inputs[0], **inputs[1]), list(module.buffers())]


@registry.aspect("module", "forward")
def forward(case: Case) -> None:
    _compared(case, _outputs, False, Carrier(case.session.device))


@registry.aspect("module", "noncontiguous")
def noncontiguous(case: Case) -> None:
    _compared(case, _outputs, False, Carrier(case.session.device, layout=samples.noncontiguous))


@registry.aspect("module", "channels_last")
def channels_last(case: Case) -> None:
    def use(module: Any, inputs: Any) -> Any:
        if not any(t.dim() in (4, 5) for t in compare.leaves(inputs)):
            raise NotApplicable("no input has 4 or 5 dimensions")
        for dims, form in ((4, torch.channels_last), (5, torch.channels_last_3d)):
            if any(t.dim() == dims for t in compare.leaves(inputs)):
                module = module.to(memory_format=form)
        return _outputs(module, inputs)

    _compared(case, use, False, Carrier(case.session.device, layout=samples.channels_last))


@registry.aspect("module", "backward")
def backward(case: Case) -> None:
    def use(module: Any, inputs: Any) -> Any:
        parameters = [p for p in module.parameters() if p.requires_grad]
        return gradients(
            lambda given: module(*given[0][0], **given[0][1]), (inputs, parameters), lambda x: x
        )[0]

    _compared(case, use, True, Carrier(case.session.device))


@registry.aspect("module", "autocast")
def lowered(case: Case) -> None:
    home = Carrier(torch.device("cpu"))

    def check(place: Place, number: int, example: Example) -> None:
        full = at_home(lambda: example.run(home)).get()

        def home_lowered() -> Any:
            with autocast.under(torch.device("cpu")):
                return example.run(home)

        low: Home = at_home(home_lowered)
        with place.surrounding(), autocast.under(place.device):
            actual = example.run(place.carrier)
        if not is_random(lambda: example.run(home)):
            autocast.judge(actual, full, low)

    all_samples(case.session, case.cell, case.examples(), check, Carrier(case.session.device))


@registry.aspect("module", "errors")
def refused(case: Case) -> None:
    errors.module(case.session, case.cell, case.info)


@registry.suite("module")
def run(session: Session, cell: Cell) -> None:
    info = cases.entries("module")[cell.entry]
    registry.aspects["module", cell.aspect](Case(session, cell, info))
