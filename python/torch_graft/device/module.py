# python/torch_graft/device/module.py: torch.graft under PyTorch's names.
"""PyTorch finds a device's module by its name: Dynamo takes the last part of module.__name__ for
an attribute of torch. So the device's module and its parts have that name and the contents of
accelerator.py and others. The parts are files of the folder parts, which is the module's __path__:
`from torch.<name>.amp import autocast` works as with torch.cuda."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

_PARTS = Path(__file__).with_name("parts")


def _contents(module: ModuleType) -> dict[str, Any]:
    kept = ("__all__", "__dir__", "__doc__", "__file__", "__getattr__")
    return {key: one for key, one in vars(module).items() if key[:2] != "__" or key in kept}


def fill(part: dict[str, Any]) -> None:
    """Called by a file of the folder parts with its globals: they become those of the part that the
    device's module has under the file's name."""
    whole, _, name = part["__name__"].rpartition(".")
    owner = sys.modules[whole]
    part.update(_contents(vars(owner)[name]))
    if name == "memory":  # torch.cuda.memory has the pools, too
        part.update(MemPool=owner.MemPool, use_mem_pool=owner.use_mem_pool)


def device_module(name: str, contents: ModuleType) -> ModuleType:
    """The module for torch.<name>, with the contents of a module of this package. Called once for
    each name."""
    made = ModuleType(f"torch.{name}")
    vars(made).update(_contents(contents), __path__=[str(_PARTS)])
    return made


def load_parts(made: ModuleType) -> None:
    """Imports the parts, which become attributes. REQUIRES: PyTorch has the module."""
    for file in sorted(_PARTS.glob("*.py")):
        importlib.import_module(f"{made.__name__}.{file.stem}")
