# python/torch_graft/device_module.py: torch.graft under PyTorch's names.
"""PyTorch finds a device's module by its name: Dynamo takes the last part of module.__name__ for
an attribute of torch. So torch.graft and its parts are modules of that name with the contents of
accelerator.py and others; `from torch.graft.amp import autocast` works as with torch.cuda."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

_PARTS = ("amp", "graphs", "memory", "random", "streams")


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the parts of one module by their full names."""

    def __init__(self, parts: dict[str, ModuleType]) -> None:
        self._parts = parts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._parts:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._parts[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        pass


def _renamed(module: ModuleType, name: str) -> ModuleType:
    made = ModuleType(name, module.__doc__)
    kept = ("__all__", "__dir__", "__file__", "__getattr__")
    contents = vars(module).items()
    vars(made).update({key: one for key, one in contents if key[:2] != "__" or key in kept})
    return made


def device_module(name: str) -> ModuleType:
    """The module for torch.<name>. Called once."""
    from torch_graft import accelerator

    made = _renamed(accelerator, f"torch.{name}")
    parts = {part: _renamed(vars(accelerator)[part], f"{made.__name__}.{part}") for part in _PARTS}
    # torch.cuda.memory has the pools, too; here they come after memory, whose figures they use.
    vars(parts["memory"]).update(MemPool=made.MemPool, use_mem_pool=made.use_mem_pool)
    vars(made).update(parts, __path__=[])
    sys.meta_path.append(_Parts({part.__name__: part for part in parts.values()}))
    return made
