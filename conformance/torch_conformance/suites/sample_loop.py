# conformance/torch_conformance/suites/sample_loop.py: runs a check over all samples of a cell and gathers what failed.
"""A check is called with a place (the device, or home: the CPU) and a sample.

What fails on the device is tried at home: where the CPU does the same, the device is right to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from torch_conformance import private_names as inside
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import Mismatch, NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import Carrier

SEED = 20260101


class Place(NamedTuple):
    """Where a check computes."""

    carrier: Carrier
    surrounding: Callable[[], contextlib.AbstractContextManager[Any]]

    @property
    def device(self) -> torch.device:
        return self.carrier.device


class Home(NamedTuple):
    """What the CPU gave for a sample: a value, or the exception it raised."""

    value: Any = None
    error: Exception | None = None

    def get(self) -> Any:
        if isinstance(self.error, NotApplicable):
            raise self.error
        if self.error is not None:
            raise NotApplicable(f"the CPU itself raises {one_line(self.error)}")
        return self.value


Check = Callable[[Place, int, Any], None]


class DeviceError(Exception):
    """The device raised where the CPU does not."""


def one_line(error: BaseException, limit: int = 300) -> str:
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def seed(value: int = SEED) -> None:
    torch.default_generator.manual_seed(value)


class Draws(inside.TorchDispatchMode):
    """Notes whether an operator that runs inside takes random numbers."""

    found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags and kwargs.get("generator") is None:
            self.found = True  # a given generator is the runner's own, with a fixed seed
        return func(*args, **kwargs)


def is_random(function: Callable[[], Any]) -> bool:
    """Whether function, run on the CPU, draws random numbers."""
    with Draws() as draws:
        function()
    return draws.found


def at_home(function: Callable[[], Any]) -> Home:
    seed()
    try:
        return Home(function())
    except Exception as error:
        return Home(error=error)


def _inputs(sample: Any) -> str:
    """The inputs of a sample in words."""
    try:
        text = sample.summary() if hasattr(sample, "summary") else getattr(sample, "desc", "")
    except Exception:
        text = ""
    return " ".join(str(text).split())[:300]


def all_samples(
    session: Session, cell: Cell, samples: Iterable[Any], check: Check, carrier: Carrier
) -> None:
    """Runs check on every sample; raises Mismatch or DeviceError with the first failure and their number."""
    there = Place(carrier, lambda: session.on_device(cell))
    home = Place(carrier.at_home(), contextlib.nullcontext)
    failures: list[str] = []
    wrong = False
    absent: str | None = None
    for number, sample in enumerate(samples):
        session.progress(number)
        proof = session.proof
        if proof is not None:
            proof.before()
        right = False
        try:
            check(there, number, sample)
            right = True
        except NotApplicable as reason:
            absent = absent or str(reason)
            continue
        except Exception as error:
            excuse = _same_at_home(check, home, number, sample)
            if excuse:
                absent = absent or f"the CPU fails too: {excuse}"
                continue
            wrong = wrong or isinstance(error, Mismatch)
            text = str(error) if isinstance(error, Mismatch) else one_line(error, 1200)
            failures.append(f"sample {number}: {text} [{_inputs(sample)}]")
        session.samples += 1
        if proof is not None and proof.after(right):
            break
    if failures:
        text = f"{len(failures)} of {session.samples} samples; first: {failures[0]}"
        raise Mismatch(text) if wrong else DeviceError(text)
    if absent and session.samples == 0:
        raise NotApplicable(absent)
    if absent:
        session.notes.add(f"some samples left out: {absent}")


def _same_at_home(check: Check, home: Place, number: int, sample: Any) -> str | None:
    try:
        check(home, number, sample)
    except NotApplicable as reason:
        return str(reason)
    except Exception as error:
        return one_line(error)
    return None


def require(text: str | None) -> None:
    if text:
        raise Mismatch(text)


def require_place(result: Any, place: Place) -> None:
    """Tensors of a result lie on the device."""
    for tensor in compare.leaves(result):
        if tensor.device.type != place.device.type:
            raise Mismatch(f"the result lies on {tensor.device} instead of {place.device}")
