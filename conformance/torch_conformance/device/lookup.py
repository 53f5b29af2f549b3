# conformance/torch_conformance/device/lookup.py: finds the device under test and says what it is.
"""Called in the workers: the process that starts them touches no device."""

from __future__ import annotations

import importlib
import os
import platform
from types import ModuleType
from typing import Any

from torch_conformance import SetupError
from torch_conformance import private_names as inside
from torch_conformance.device import package


def load_plugin(name: str | None) -> ModuleType | None:
    """The module that --plugin names: it registers a device, surrounds its work, or both."""
    if name is None:
        return None
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise SetupError(
            f"--plugin {name}: the import fails with {type(error).__name__}: {error}. Install the "
            "package that holds it, or put its folder on PYTHONPATH"
        ) from error


def check(name: str, plugin: str | None) -> None:
    """Raises SetupError unless a tensor can be put on the device."""
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        own = inside.privateuse1_name()
        known = "cpu, cuda, mps, xpu, meta" + ("" if own == "privateuseone" else f", {own}")
        hint = "" if plugin else "; if a module registers the device, name it: --plugin MODULE"
        raise SetupError(
            f"PyTorch knows no device '{name}' (it knows {known} and others). Install the "
            f"package that brings it into this environment{hint}. PyTorch says: {_first(error)}"
        ) from error
    if device.type == "meta":
        raise SetupError("the device 'meta' has no values: there is nothing to compare")
    try:
        torch.ones(2).to(device).cpu()  # what comes back is for the cells to judge
    except Exception as error:
        raise SetupError(
            f"no tensor can be put on the device '{name}': {type(error).__name__}: {_first(error)}. "
            "Check that the hardware and its driver are there, with a program of its vendor"
        ) from error


def _first(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "")[:400]


def describe(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The "device" object of the results file."""
    import torch

    device = torch.device(name)
    hardware = _hardware(device)
    return {
        "name": device.type,
        "label": options.get("label") or device.type,
        "hardware": hardware,
        "torch": torch.__version__,
        "package": _package(device),
        "machine": f"{os.cpu_count()} x {_processor()}, {platform.system()} {platform.machine()}",
        "options": options,
    }


def _hardware(device: Any) -> str:
    import torch

    if device.type == "cpu":
        return _processor()
    module = torch.get_device_module(device.type)
    try:
        return str(module.get_device_name(device.index or 0))
    except Exception:
        return device.type


def _package(device: Any) -> str | None:
    """Name and version of the package that registered the device's module, where there is one."""
    import importlib.metadata

    owner = package.owner(device.type)
    if owner is None:
        return None
    names = importlib.metadata.packages_distributions().get(owner) or [owner]
    try:
        return f"{names[0]} {importlib.metadata.version(names[0])}"
    except importlib.metadata.PackageNotFoundError:
        return names[0]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
