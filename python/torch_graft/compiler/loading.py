# python/torch_graft/compiler/loading.py: work that waits until somebody imports a module of PyTorch.
"""Some settings are kept in modules that `import torch` does not load and that take a second to
load. So they are made when such a module is loaded, by Python's own import hooks. PyTorch 2.13 has
functions that take these settings, and none that takes them before: Dynamo's device interface,
context manager and constants, the default backend; Inductor looks for code generators on the
device's module, but takes no pass from there that could refuse a graph."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Action = Callable[[Any], None]


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader, action: Action) -> None:
        self._inner = inner
        self._action = action

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        self._action(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, action: Action) -> None:
        self._name = name
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._action)
        return spec


def when_loaded(name: str, action: Action) -> None:
    """Calls action(module) once, when the module of this name is loaded, or now if it is."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, action))
