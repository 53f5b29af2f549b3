# conformance/torch_conformance/device/package.py: what the package that brings a device says about it.
"""A device's package states what its devices cannot pass in a file expectations.toml of its own, and
names the folder of the file, a package, as an entry point:

    [project.entry-points."torch_conformance.expectations"]
    torch_npu = "torch_npu"

The rows hold for all devices that the package brings, whatever their names are.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
from pathlib import Path

from torch_conformance import SetupError

GROUP = "torch_conformance.expectations"
FILE = "expectations.toml"


def owner(device_type: str) -> str | None:
    """The package that registered the device's module; None for PyTorch's own devices, or if there is none."""
    import torch

    if device_type in ("cpu", "meta"):
        return None
    module = getattr(torch, device_type, None)
    count = getattr(module, "device_count", None)
    name = str(getattr(count, "__module__", "")).split(".")[0]
    return None if name in ("", "torch") else name


def files(device_type: str) -> list[Path]:
    """The files of rows that the device's package states, none if this process does not know the device."""
    name = owner(device_type)
    if name is None:
        return []
    entries = importlib.metadata.entry_points(group=GROUP)
    return [_file(e) for e in entries if e.module.split(".")[0] == name]


def _file(entry: importlib.metadata.EntryPoint) -> Path:
    try:
        path = Path(str(importlib.resources.files(entry.module))) / FILE
    except ImportError as error:
        raise SetupError(
            f"the entry point {GROUP}: {entry.value} names no package: {error}"
        ) from error
    if not path.is_file():
        raise SetupError(
            f"the entry point {GROUP}: {entry.value} names a package without a file {FILE}: "
            f"{path} is not there"
        )
    return path
