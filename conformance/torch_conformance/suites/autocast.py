# conformance/torch_conformance/suites/autocast.py: the aspect autocast: low precision where the CPU takes it.
"""A device passes when its result is near the float32 result, and low where the CPU's is low."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from torch_conformance.cells import registry
from torch_conformance.cells.outcome import Mismatch
from torch_conformance.suites.case import HOME, Case, arguments
from torch_conformance.suites.sample_loop import (
    Home,
    Place,
    all_samples,
    at_home,
    is_random,
    require,
)
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import Carrier

DTYPE = torch.bfloat16
RELATIVE, OF_LARGEST = 0.05, 0.03  # bfloat16 keeps 8 bits; sums lose some more


def under(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """torch.autocast; for a device type that it does not know, what the device's module offers."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, dtype=DTYPE)
    manager: contextlib.AbstractContextManager[Any]
    manager = torch.get_device_module(device).amp.autocast(dtype=DTYPE)
    return manager


def _near(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    a, e = actual.detach().cpu(), expected.detach()
    if a.layout != torch.strided or e.layout != torch.strided:
        return True
    if not (e.is_floating_point() or e.is_complex()):
        return a.equal(e)
    wide = torch.complex128 if e.is_complex() else torch.float64
    a, e = a.to(wide), e.to(wide)
    finite = e.isfinite()
    if not finite.any():
        return True
    if not a[finite].isfinite().all():
        return False
    a, e = a[finite], e[finite]
    bound = RELATIVE * e.abs() + OF_LARGEST * e.abs().max() + 1e-2
    return bool(((a - e).abs() <= bound).all())


def judge(actual: Any, full: Any, low: Home) -> None:
    """full: the CPU's float32 result; low: the CPU's result under its own autocast."""
    ours, theirs = list(compare.leaves(actual)), list(compare.leaves(full))
    lows = list(compare.leaves(low.value)) if low.error is None else theirs
    if len(ours) != len(theirs):
        require(f"{len(ours)} tensors instead of {len(theirs)}")
    for a, e, x in zip(ours, theirs, lows, strict=False):
        if a.shape != e.shape:
            require(f"shape {tuple(a.shape)} instead of {tuple(e.shape)}")
        if x.dtype == DTYPE and a.dtype != DTYPE:
            require(f"dtype {a.dtype} under autocast, where the CPU gives {x.dtype}")
        if not (_near(a, e) or _near(a, x)):
            text = compare.difference(a.detach().cpu().to(e.dtype), e, {})
            require(f"values under autocast are far from float32: {text}")


@registry.aspect("op", "autocast")
def operator(case: Case) -> None:

    def check(place: Place, number: int, sample: Any) -> None:
        full, _ = case.reference(number, sample)

        def lowered(inputs: Any, device: torch.device = place.device) -> Any:
            with under(device):
                return case.call(inputs)

        case.session.expects(full, arguments(sample))
        actual = case.on(place, sample, lowered)
        if not case.session.values_compared(case.cell):
            return
        try:
            low = at_home(lambda: lowered(HOME(arguments(sample)), HOME.device))
            judge(actual, full, low)
        except Mismatch:
            if not is_random(lambda: case.call(HOME(arguments(sample)))):
                raise
            case.session.left_open("random values: only their number is compared")

    all_samples(case.session, case.cell, case.samples(), check, Carrier(case.session.device))
