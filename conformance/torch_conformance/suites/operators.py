# conformance/torch_conformance/suites/operators.py: the aspects of op_db's entries.
"""Each aspect is a function of a case: an entry in one dtype, with its samples and their references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells import cases, registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.suites.case import HOME, Case, arguments, outs
from torch_conformance.suites.sample_loop import (
    SEED,
    Place,
    all_samples,
    at_home,
    is_random,
    require,
    require_place,
    seed,
)
from torch_conformance.tensors import compare, samples, ties
from torch_conformance.tensors.samples import Carrier

Maker = Callable[[torch.Tensor, torch.device], torch.Tensor]


@registry.aspect("op", "forward")
def forward(case: Case, chosen: Iterable[Any] | None = None, **carrying: Any) -> None:
    """Results on the device equal the CPU's; carrying: the layout of the inputs."""

    def laid(place: Place, sample: Any, expected: Any) -> Any:
        """The CPU's result for inputs of that layout, where the layout is part of the meaning."""
        copies = place.carrier.at_home()(arguments(sample))
        found = at_home(lambda: case.call(copies)).get()
        if compare.difference(found, expected, case.allowed):
            case.session.notes.add(
                "the layout of the inputs decides the result: the CPU's was the same"
            )
            return found
        return expected

    def check(place: Place, number: int, sample: Any) -> None:
        expected, shared = case.reference(number, sample)
        case.session.expects(expected, arguments(sample))
        inputs = case.carried(place, sample)
        seed()
        with place.surrounding():
            actual = case.call(inputs)
        text = case.close(actual, expected, sample)
        if text and place.carrier.changes_layout:
            text = case.close(actual, laid(place, sample, expected), sample)
        require(text)
        if _has_tensor(inputs):
            require_place(actual, place)
        if case.cell.aspect == "view":
            ours = samples.shares(actual, inputs)
            if any(theirs and not own for theirs, own in zip(shared, ours, strict=False)):
                require("the result is a copy, where the CPU's is a view of its input")
        elif case.cell.aspect == "channels_last":
            _format_kept(case, actual, inputs)

    source = enumerate(case.samples()) if chosen is None else chosen
    _numbered(case, source, check, Carrier(case.session.device, **carrying))


def _has_tensor(inputs: Any) -> bool:
    return next(compare.leaves(inputs), None) is not None


def _numbered(case: Case, chosen: Iterable[Any], check: Any, carrier: Carrier) -> None:
    """As all_samples, for (number, sample) pairs."""
    pairs = list(chosen)
    numbers = [number for number, _ in pairs]
    all_samples(
        case.session, case.cell, [sample for _, sample in pairs],
        lambda place, i, sample: check(place, numbers[i], sample), carrier,
    )  # fmt: skip


def _format_kept(case: Case, actual: Any, inputs: Any) -> None:
    """Elementwise operators keep channels-last, by PyTorch's contract."""
    first = inputs[0]
    if not isinstance(case.info, inside.UnaryUfuncInfo) or not isinstance(actual, torch.Tensor):
        return
    if actual.shape == first.shape and actual.stride() != first.stride():
        require(f"strides {actual.stride()} instead of the channels-last {first.stride()}")


def _where(case: Case, wanted: Callable[[torch.Tensor], bool]) -> list[tuple[int, Any]]:
    return [(n, s) for n, s in enumerate(case.samples())
            if any(wanted(t) for t in compare.leaves(arguments(s)))]  # fmt: skip


@registry.aspect("op", "view")
def view(case: Case) -> None:
    forward(case, move=samples.shifted)


@registry.aspect("op", "noncontiguous")
def noncontiguous(case: Case) -> None:
    forward(case, _where(case, lambda t: t.numel() > 1), layout=samples.noncontiguous)


@registry.aspect("op", "channels_last")
def channels_last(case: Case) -> None:
    forward(case, _where(case, lambda t: t.dim() in (4, 5)), layout=samples.channels_last)


@registry.aspect("op", "empty")
def empty(case: Case) -> None:
    forward(case, _where(case, lambda t: t.numel() == 0))


@registry.aspect("op", "zero_dim")
def zero_dim(case: Case) -> None:
    forward(case, _where(case, lambda t: t.dim() == 0))


def gradients(
    call: Callable[[Any], Any], inputs: Any, process: Callable[[Any], Any], given: Any = None,
    seed: int = SEED,
) -> Any:  # fmt: skip
    """Gradients of all differentiable inputs, and those of the outputs behind them.

    given: the outputs' gradients; numbers that the seed fixes when None.
    """
    outputs = [t for t in compare.leaves(process(call(inputs))) if t.requires_grad]
    wanted = [t for t in {id(t): t for t in compare.leaves(inputs)}.values() if t.requires_grad]
    if not outputs or not wanted:
        raise NotApplicable("nothing of this sample is differentiable")
    source = torch.Generator().manual_seed(seed)
    if given is None:
        given = [_gradient_like(t, source) for t in outputs]
    else:
        given = [g.to(t) for g, t in zip(given, outputs, strict=True)]
    return torch.autograd.grad(outputs, wanted, given, allow_unused=True), given


def _gradient_like(tensor: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    values = torch.randn(tensor.shape, dtype=wide, generator=source).to(tensor.dtype)
    if tensor.layout != torch.strided:
        return torch.ones_like(tensor)
    return values.to(tensor.device)


@registry.aspect("op", "backward")
def backward(case: Case) -> None:
    def grads_of(sample: Any, inputs: Any, given: Any = None, **seed: int) -> Any:
        return gradients(case.call, inputs, sample.output_process_fn_grad, given, **seed)

    def others(sample: Any) -> list[tuple[Any, Any]]:
        """The CPU's gradients and float64's for other gradients of the outputs."""
        found = []
        for number in range(1, 4):
            cpu, given = grads_of(sample, HOME(arguments(sample)), seed=SEED + number)
            found.append((cpu, grads_of(sample, samples.upcast(arguments(sample)), given)[0]))
        return found

    def check(place: Place, number: int, sample: Any) -> None:
        expected, given = at_home(lambda: grads_of(sample, HOME(arguments(sample)))).get()
        case.session.expects(expected, [arguments(sample), given])
        actual, _ = case.on(place, sample, lambda inputs: grads_of(sample, inputs))
        text = compare.difference(actual, expected, case.allowed, "gradient")
        if text is None:
            return
        if not case.session.values_compared(case.cell):
            require(compare.metadata_difference(actual, expected))
            return
        if is_random(lambda: grads_of(sample, HOME(arguments(sample)))):
            case.session.left_open("random gradients: only shapes and dtypes are compared")
            require(compare.metadata_difference(actual, expected))
            return
        if not ties.same_sums(case.info.name, actual, expected, arguments(sample), case.allowed):
            case.session.notes.add("positions of equal elements: gradients are compared in sum")
            return
        seed()
        # The same numbers as in the narrow type: they were rounded to it.
        exact = at_home(lambda: grads_of(sample, samples.upcast(arguments(sample)), given))
        if exact.error:
            require(text)
        truth = exact.value[0]
        if compare.no_farther(actual, expected, truth, case.allowed):
            return
        more = at_home(lambda: others(sample))
        if more.error or not compare.no_farther(actual, expected, truth, case.allowed, more.value):
            require(text)

    all_samples(case.session, case.cell, case.samples(True), check, Carrier(case.session.device))


def _filled(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.zeros(tensor.shape, dtype=tensor.dtype).to(device)


def _spread(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """An output whose last dimension lies two elements apart."""
    if tensor.dim() == 0:
        return _filled(tensor, device)
    shape = (*tensor.shape[:-1], 2 * tensor.shape[-1])
    return torch.zeros(shape, dtype=tensor.dtype).to(device)[..., ::2]


def _none(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.zeros(0, dtype=tensor.dtype).to(device)


@registry.aspect("op", "out")
def out(case: Case) -> None:
    """Given outputs are written: of the right shape, strided, and empty ones that must grow."""

    def written(place: Place, sample: Any, expected: Any, make: Maker) -> str | None:
        given = outs(expected, lambda t: make(t, place.device))
        strides = [t.stride() for t in compare.leaves(given)]
        case.on(place, sample, lambda inputs: case.call(inputs, out=given))
        text = case.close(list(given) if isinstance(expected, list) else given, expected, sample)
        kept = [t.stride() for t in compare.leaves(given)]
        if text is None and make is not _none and kept != strides:
            text = f"strides {kept} instead of the given {strides}"
        return f"out= ({make.__name__.strip('_')}): {text}" if text else None

    def check(place: Place, number: int, sample: Any) -> None:
        expected, _ = case.reference(number, sample)
        case.session.expects(expected, arguments(sample))
        for make in (_filled, _spread, _none):
            require(written(place, sample, expected, make))

    all_samples(case.session, case.cell, case.samples(), check, Carrier(case.session.device))


@registry.aspect("op", "inplace")
def inplace(case: Case) -> None:
    def change(inputs: Any) -> tuple[Any, bool]:
        first, args, kwargs = inputs
        result = case.info.inplace_variant(first, *args, **kwargs)
        return first, result is first

    def check(place: Place, number: int, sample: Any) -> None:
        if sample.broadcasts_input:
            raise NotApplicable("the sample's input would have to grow")
        expected, _ = at_home(lambda: change(HOME(arguments(sample)))).get()
        case.session.expects(expected, arguments(sample))
        actual, same = case.on(place, sample, change)
        text = compare.difference(actual, expected, case.allowed)
        if text:
            text = _open_inplace(case, actual, expected, sample, change)
        require(text)
        if not same:
            require("the in-place variant returns another tensor than its input")

    all_samples(case.session, case.cell, case.samples(), check, Carrier(case.session.device))


def _open_inplace(case: Case, actual: Any, expected: Any, sample: Any, change: Any) -> str | None:
    text = compare.difference(actual, expected, case.allowed)
    if is_random(lambda: change(HOME(arguments(sample)))):
        case.session.left_open("random values: only shapes and dtypes are compared")
        return compare.metadata_difference(actual, expected)
    return None if case.near_float64(actual, expected, sample) else text


@registry.suite("op")
def run(session: Session, cell: Cell) -> None:
    case = session.case
    if not isinstance(case, Case) or case.cell[:3] != cell[:3]:
        case = session.case = Case(session, cell, cases.entries("op")[cell.entry])
    case.cell = cell
    registry.aspects["op", cell.aspect](case)
