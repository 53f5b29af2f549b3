# conformance/torch_conformance/fuzz/undefined.py: calls whose values nothing fixes, on the CPU neither.
"""Their results are compared in shape and dtype alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from torch_conformance import private_names as inside
from torch_conformance.fuzz.calls import Call
from torch_conformance.fuzz.trial import Result
from torch_conformance.tensors import compare, samples

LARGE, SMALL = 1e30, 1e-300  # numbers beyond these overflow or vanish at one step or another
BEYOND = 2**31  # of an integer's range


def open_value(call: Call, home: Result, expected: Any) -> str | None:
    """Why a difference of values says nothing; None where it does."""
    given = list(compare.leaves(home.arguments))
    if _shared(given):
        return "an output that is an input"
    if _overlapping(given) and _writes(call):
        return "an output that overlaps itself"
    if any(_extreme(number) for number in _numbers(home.arguments)):
        return "a number that is not finite, or hardly"
    if _converted(given, expected):
        return "a floating number outside the range of integers"
    return None


def _shared(given: list[torch.Tensor]) -> bool:
    """Two arguments share their memory: what is read after it was written is open."""
    places = [inside.storage_address(t.untyped_storage()) for t in given if samples.is_strided(t)]
    return len(places) > len(set(places))


def _overlapping(given: list[torch.Tensor]) -> bool:
    return any(samples.is_strided(t) and inside.has_internal_overlap(t) for t in given)


def _writes(call: Call) -> bool:
    name = call.target.split("torch.ops.")[-1]
    return "entry(" not in name and (name.split(".")[1].endswith("_") or "out" in name
                                     or any(a.keyword and "made(" in a.text for a in call.arguments))  # fmt: skip


def _numbers(value: Any) -> Iterator[complex]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float | complex):
        yield value


def _extreme(number: complex) -> bool:
    size = abs(number)
    return not math.isfinite(size) or size > LARGE or 0 < size < SMALL


def _converted(given: list[torch.Tensor], expected: Any) -> bool:
    """Floating numbers outside an integer's range were converted: C++ leaves that open."""
    whole = any(not (t.dtype.is_floating_point or t.dtype.is_complex or t.dtype == torch.bool)
                for t in compare.leaves(expected))  # fmt: skip
    return whole and any(
        samples.is_strided(t) and t.is_floating_point() and t.numel() > 0
        and not bool((t.detach().double().abs() < BEYOND).all())
        for t in given
    )  # fmt: skip


def _finite(tensor: torch.Tensor) -> bool:
    if not samples.is_strided(tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    return bool(tensor.detach().to(wide).isfinite().all())


def same_but_infinite(
    actual: Any, expected: Any, given: Any, allowed: dict[torch.dtype, compare.Tolerance]
) -> bool:
    """Whether results differ only where neither is finite, of inputs that are not finite either."""
    if all(_finite(t) for t in compare.leaves(given)):
        return False
    ours, theirs = list(compare.leaves(actual)), list(compare.leaves(expected))
    if len(ours) != len(theirs) or compare.metadata_difference(actual, expected):
        return False
    return all(_alike(a, e, allowed) for a, e in zip(ours, theirs, strict=True))


def _alike(a: torch.Tensor, e: torch.Tensor, allowed: dict[torch.dtype, compare.Tolerance]) -> bool:
    if not samples.is_strided(e) or not e.is_floating_point():
        return compare.difference(a, e, allowed) is None
    a, e = a.detach().cpu(), e.detach()
    neither = ~(a.double().isfinite() | e.double().isfinite())
    fill = torch.zeros((), dtype=e.dtype)
    return compare.difference(a.where(~neither, fill), e.where(~neither, fill), allowed) is None
