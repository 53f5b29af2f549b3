# python/torch_graft/device/indices.py: from what users give for a device to its index.
"""Device arguments: None, an index, a string or a torch.device."""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import private_names as inside

DeviceLike = Any  # int | str | torch.device | None; torch's stubs know no common name


def device_index(device: DeviceLike, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device of ours.

    None and a device without an index mean the current one, where optional allows it; a string
    without an index always does. allow_cpu gives -1 for the CPU. The messages are torch.cuda's.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    name = inside.privateuse1_name()
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != name:
            raise ValueError(f"Expected a {name} device, but got: {device}")
        return torch.accelerator.current_device_index() if device.index is None else device.index
    if device is None and optional:
        return torch.accelerator.current_device_index()
    raise ValueError(f"Expected a {name} device or an integer, but got: {device!r}")
