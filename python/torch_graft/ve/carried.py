# python/torch_graft/ve/carried.py: torch.graft's functions for the devices of torch.device("ve").
"""A device of the slot is carried by one of Graft's own device type, whose index the functions of its
module take. So each function of torch.ve is one of those, with its devices translated."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torch_graft import _C
from torch_graft.device.indices import DeviceLike
from torch_graft.ve import NAME


def slot_index(device: DeviceLike, optional: bool = True) -> int:
    """The index in the slot. None and a device without an index mean the current one."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if device is None and optional:
        return int(_C.ve.current_device())
    if not isinstance(device, torch.device):
        raise ValueError(f"Expected a {NAME} device or an integer, but got: {device!r}")
    if device.type != NAME:
        raise ValueError(f"Expected a {NAME} device, but got: {device}")
    return int(_C.ve.current_device()) if device.index is None else device.index


def inner_index(device: DeviceLike = None) -> int:
    """The index of the device of Graft's own type that carries it. Opens the device."""
    return int(_C.ve.inner_index(slot_index(device)))


def inner_indices() -> list[int]:
    return [inner_index(index) for index in range(_C.ve.device_count())]


@contextmanager
def inner_current() -> Iterator[None]:
    """What carries the slot's current device is the current one of Graft's own type meanwhile."""
    before = _C.exchange_device(inner_index())
    try:
        yield
    finally:
        _C.ve.restore_inner(before)


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of accelerator.py for a device of the slot: its parameter `device`, or its current one."""
    signature = inspect.signature(function)
    takes_device = "device" in signature.parameters

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        if takes_device:
            given.arguments["device"] = inner_index(given.arguments.get("device"))
        with inner_current():
            return function(*given.args, **given.kwargs)

    return call
