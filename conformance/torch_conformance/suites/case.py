# conformance/torch_conformance/suites/case.py: an entry of op_db in one dtype, with its samples and their references.
"""What the aspects of the suite "op" are functions of."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.suites.sample_loop import Home, Place, at_home, is_random, seed
from torch_conformance.tensors import compare, samples, ties
from torch_conformance.tensors.samples import Carrier

HOME = Carrier(torch.device("cpu"))


def arguments(sample: Any) -> tuple[Any, Any, Any]:
    return sample.input, sample.args, sample.kwargs


class Case:
    """An entry in one dtype; samples and references are made once for all of its aspects."""

    def __init__(self, session: Session, cell: Cell, info: Any) -> None:
        self.session = session
        self.cell = cell
        self.info = info
        self.dtype = getattr(torch, cell.dtype, torch.float32)
        self.allowed = session.tolerances(info)
        self.made: dict[bool, list[Any]] = {}
        self.first: dict[bool, list[Any]] = {}
        self.references: dict[int, Home] = {}

    def samples(self, requires_grad: bool = False) -> list[Any]:
        if requires_grad not in self.made:
            self.made[requires_grad] = self._made(requires_grad)
        return self.made[requires_grad]

    def _made(self, requires_grad: bool, count: int | None = None) -> list[Any]:
        seed()
        try:
            found = self.info.sample_inputs("cpu", self.dtype, requires_grad)
            return list(itertools.islice(found, count))
        except Exception as error:
            raise NotApplicable(f"upstream's samples cannot be made: {error}") from error

    def first_samples(self, count: int, requires_grad: bool = False) -> list[Any]:
        """As samples, but for those behind the first ones: some entries have thousands."""
        if requires_grad in self.made:
            return self.made[requires_grad][:count]
        if requires_grad not in self.first or len(self.first[requires_grad]) < count:
            self.first[requires_grad] = self._made(requires_grad, count)
        return self.first[requires_grad][:count]

    def reference(self, number: int, sample: Any) -> Any:
        """The CPU's (result, whether each of its tensors shares memory with an input)."""
        if number not in self.references:

            def compute() -> Any:
                copies = HOME(arguments(sample))
                value = self.call(copies)
                return value, samples.shares(value, copies)

            self.references[number] = at_home(compute)
        return self.references[number].get()

    def call(self, inputs: tuple[Any, Any, Any], **more: Any) -> Any:
        first, args, kwargs = inputs
        return self.info(first, *args, **kwargs, **more)

    def on(self, place: Place, sample: Any, call: Callable[[Any], Any] | None = None) -> Any:
        """What call gives for the sample's inputs carried to a place."""
        inputs = self.carried(place, sample)
        seed()
        with place.surrounding():
            return (call or self.call)(inputs)

    def carried(self, place: Place, sample: Any) -> tuple[Any, Any, Any]:
        """The sample's inputs at a place; where a row says so, the first one alone."""
        inputs: tuple[Any, Any, Any] = place.carrier(arguments(sample))
        if self.session.expectations.host_arguments(self.cell):
            return (inputs[0], *place.carrier(arguments(sample)[1:], at_home=True))
        return inputs

    def close(self, actual: Any, expected: Any, sample: Any) -> str | None:
        """The difference that remains after what the CPU itself leaves open."""
        text = compare.difference(actual, expected, self.allowed)
        if text is None:
            return None
        if not self.session.values_compared(self.cell):
            return compare.metadata_difference(actual, expected)
        if is_random(lambda: self.call(HOME(arguments(sample)))):
            self.session.left_open("random values: only shapes and dtypes are compared")
            return compare.metadata_difference(actual, expected)
        process = sample.output_process_fn_grad
        if compare.difference(process(actual), process(expected), self.allowed) is None:
            return None
        if ties.same_elements(self.info.name, actual, expected, arguments(sample)):
            self.session.notes.add("positions of equal elements: the elements are compared")
            return None
        return None if self.near_float64(actual, expected, sample) else text

    def near_float64(self, actual: Any, expected: Any, sample: Any) -> bool:
        seed()
        try:
            with samples.default_dtype(torch.float64):  # what integers are promoted to
                exact = self.call(samples.upcast(arguments(sample)))
        except Exception:
            return False
        return compare.no_farther(actual, expected, exact, self.allowed)


def outs(value: Any, make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return make(value)
    if isinstance(value, tuple | list) and all(isinstance(v, torch.Tensor) for v in value):
        return tuple(make(v) for v in value)
    raise NotApplicable("the result is no tensor or tuple of tensors")
