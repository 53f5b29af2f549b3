# conformance/torch_conformance/suites/variants.py: a sample of op_db in an awkward form, and how two places answer to it.
"""A variant is computed on the CPU and on the device from the same memory, in the same layout.

What is drawn for a cell depends on SEED, the entry and the dtype alone, so a cell is the same
wherever it runs.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.suites.case import Case
from torch_conformance.suites.sample_loop import (
    SEED,
    DeviceError,
    Place,
    all_samples,
    is_random,
    one_line,
    require,
    seed,
)
from torch_conformance.tensors import compare, samples, ties
from torch_conformance.tensors.samples import Carrier, is_strided

SMALL = 4096  # elements of all tensors of a sample that is varied
FIRST = 200  # of a cell's samples, from which are drawn
SAMPLES = 4  # of these
DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
          torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)  # fmt: skip
# Words of refusals that state a limit of a kernel of the CPU, and no rule of PyTorch.
UNMEANT = (
    "INTERNAL ASSERT",
    "Could this error message be improved",
    "TensorAccessor expected",
    "MKL FFT error",
    "data is not allocated yet",
    "std_var_all: Unsupported dtype",
    "SmallVector unable to grow",
)
Act = Callable[["Case", Any, Place], Any]


class Variant(NamedTuple):
    """Stands where a SampleInput stands; act gives what is compared for carried inputs."""

    name: str
    input: Any
    args: Any
    kwargs: Any
    output_process_fn_grad: Callable[[Any], Any]
    act: Act
    undefined: bool = False  # where the CPU takes it, only shapes and dtypes have a meaning

    def summary(self) -> str:
        return f"{self.name}; seed {SEED}; {_described((self.input, self.args, self.kwargs))}"


class Answer(NamedTuple):
    """What a place gives for a variant; late: it refused when it was waited for."""

    value: Any = None
    error: Exception | None = None
    late: bool = False
    resized: bool = False


def plain(case: Case, inputs: Any, place: Place) -> Any:
    return case.call(inputs)


def varied(name: str, sample: Any, inputs: Any = None, act: Act = plain, **more: Any) -> Variant:
    """A variant of a sample; inputs: (first, args, kwargs), the sample's own when None."""
    first, args, kwargs = inputs or (sample.input, sample.args, sample.kwargs)
    return Variant(name, first, args, kwargs, sample.output_process_fn_grad, act, **more)


def source(case: Case) -> random.Random:
    return random.Random(f"{SEED} {case.cell.entry} {case.cell.dtype} {case.cell.aspect}")


def drawn(case: Case, chance: random.Random, requires_grad: bool = False) -> list[tuple[int, Any]]:
    """(number, sample) of some small samples; those with more than one element come first."""
    small = [
        (number, sample)
        for number, sample in enumerate(case.first_samples(FIRST, requires_grad))
        if sum(t.numel() for t in tensors(sample)) <= SMALL
    ]
    chance.shuffle(small)
    small.sort(key=lambda pair: all(t.numel() < 2 for t in tensors(pair[1])))
    return small[:SAMPLES]


def tensors(sample: Any) -> list[torch.Tensor]:
    return list(compare.leaves((sample.input, sample.args, sample.kwargs)))


def chosen(sample: Any, wanted: set[int], change: Callable[[torch.Tensor], Any]) -> Any:
    """The sample's arguments with change applied to the tensors whose numbers are wanted."""
    numbers = iter(range(1 << 30))

    def one(tensor: torch.Tensor) -> Any:
        return change(tensor) if next(numbers) in wanted else tensor

    return compare.mapped((sample.input, sample.args, sample.kwargs), one)


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """As samples.carried; a tensor of zeros without memory is made anew."""
    if inside.is_zero_tensor(tensor) and tensor.device.type == "cpu":
        return inside.zero_tensor(tensor.shape, dtype=tensor.dtype, device=device)
    return samples.carried(tensor, device)


def run(case: Case, variants: list[Variant]) -> None:
    """Runs the variants of a cell, but for those that a row of the expectations leaves out."""
    kept = [v for v in variants if not _left_out(case, v)]
    all_samples(
        case.session, case.cell, kept, lambda place, _, v: _check(case, place, v),
        Carrier(case.session.device, move=moved),
    )  # fmt: skip


def _left_out(case: Case, variant: Variant) -> bool:
    name = case.cell._replace(aspect=f"{case.cell.aspect}/{variant.name}")
    row = case.session.expectations.find(name)
    if row is None or row.kind != "skip":
        return False
    case.session.notes.add(f"{variant.name} left out: {row.reason}")
    return True


def _check(case: Case, place: Place, variant: Variant) -> None:
    theirs = answer(case, Place(place.carrier.at_home(), contextlib.nullcontext), variant)
    if isinstance(theirs.error, NotApplicable):
        raise theirs.error
    if theirs.error is None:
        case.session.expects(theirs.value, (variant.input, variant.args, variant.kwargs))
    ours = answer(case, place, variant)
    if theirs.error is not None:
        _same_refusal(case, variant, ours, theirs.error)
        return
    if ours.error is not None:
        raise DeviceError(f"refuses what the CPU takes: {one_line(ours.error)}")
    if variant.undefined:
        require(compare.metadata_difference(ours.value, theirs.value))
        return
    require(_difference(case, ours.value, theirs.value, variant))
    if theirs.resized and not ours.resized:
        require("does not warn, as the CPU does, that an output was resized")


def answer(case: Case, place: Place, variant: Variant) -> Answer:
    late = False
    try:
        inputs = case.carried(place, variant)
        seed()
        with place.surrounding(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            value = variant.act(case, inputs, place)
            late = True
            if place.device.type != "cpu":
                case.session.synchronize()
    except Exception as error:
        return Answer(error=error, late=late)
    return Answer(value, resized=any("was resized" in str(w.message) for w in told))


def _same_refusal(case: Case, variant: Variant, ours: Answer, refused: Exception) -> None:
    text = str(refused)
    if any(words in text for words in UNMEANT):
        raise NotApplicable("the CPU's kernel meets a limit of its own")
    if ours.error is None:
        if "not implemented for" in text and not variant.name.startswith("dtype "):
            raise NotApplicable("the CPU has no kernel for it")
        require(f"takes what the CPU refuses with {one_line(refused)}")
    elif type(ours.error) is not type(refused) and not ours.late:
        require(f"raises {one_line(ours.error)} instead of {one_line(refused)}")
    elif str(ours.error) != text:
        case.session.notes.add("some refusals are in other words than the CPU's")


def _difference(case: Case, actual: Any, expected: Any, variant: Variant) -> str | None:
    if isinstance(expected, Gradients):
        return _gradients(case, actual, expected, variant)
    if not isinstance(expected, Written):
        text = case.close(actual, expected, variant)
        return text or _strides(case, actual, expected)
    text = _rounded(actual, expected)
    text = text or case.close(actual.narrowed(), expected.narrowed(), variant)
    if text is None and actual.strides != expected.strides:
        text = f"strides {actual.strides} instead of {expected.strides}"
    if text is None and actual.same != expected.same:
        text = "the in-place variant returns another tensor than its input"
    return text


class Written(NamedTuple):
    """Tensors that a call has written to."""

    tensors: Any
    strides: Any = None  # where the call must keep them
    same: bool = True
    own: tuple[torch.dtype, ...] = ()  # the dtypes of the operator's own results

    def narrowed(self) -> Any:
        """The tensors in the operator's own dtypes, where those are narrower."""
        dtypes = iter(self.own)

        def one(tensor: torch.Tensor) -> torch.Tensor:
            dtype = next(dtypes, tensor.dtype)
            return tensor.to(dtype) if _is_wider(tensor.dtype, dtype) else tensor

        return compare.mapped(self.tensors, one)


def _is_wider(dtype: torch.dtype, other: torch.dtype) -> bool:
    alike = dtype.is_complex == other.is_complex and other.is_floating_point | other.is_complex
    return bool(alike and dtype.itemsize > other.itemsize)


def _rounded(actual: Written, expected: Written) -> str | None:
    """Outputs of a wider dtype hold what the operator's own dtype can hold, where the CPU's do."""

    def fits(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
        there = tensor.detach().cpu()
        back = there.to(dtype).to(there.dtype)
        return bool(((back == there) | there.isnan()).all())

    found = compare.leaves(actual.tensors), compare.leaves(expected.tensors)
    for ours, theirs, dtype in zip(*found, expected.own, strict=False):
        if _is_wider(theirs.dtype, dtype) and fits(theirs, dtype) and not fits(ours, dtype):
            return f"the {ours.dtype} output is not rounded to {dtype}"
    return None


class Gradients(NamedTuple):
    found: Any
    exact: Callable[[], Any]


def _gradients(case: Case, actual: Any, expected: Gradients, variant: Variant) -> str | None:
    text = compare.difference(actual.found, expected.found, case.allowed, "gradient")
    if text is None:
        return None
    inputs = (variant.input, variant.args, variant.kwargs)
    if not case.session.values_compared(case.cell) or is_random(lambda: case.call(inputs)):
        return compare.metadata_difference(actual.found, expected.found)
    if not ties.same_sums(case.info.name, actual.found, expected.found, inputs, case.allowed):
        return None
    try:
        exact = expected.exact()
    except Exception:
        return text
    near = compare.no_farther(actual.found, expected.found, exact, case.allowed)
    return None if near else text


def _strides(case: Case, actual: Any, expected: Any) -> str | None:
    """Elementwise operators lay their result out as their inputs lie, by PyTorch's contract."""
    if not isinstance(case.info, inside.BinaryUfuncInfo | inside.UnaryUfuncInfo):
        return None
    if not isinstance(actual, torch.Tensor) or not is_strided(actual) or actual.numel() < 2:
        return None
    ours, theirs = (
        [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (actual, expected)
    )
    return None if ours == theirs else f"strides {actual.stride()} instead of {expected.stride()}"


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        place = "" if value.is_contiguous() else f" strides {tuple(value.stride())}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{place}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_described, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}={_described(v)}' for k, v in value.items())}}}"
    return repr(value)
