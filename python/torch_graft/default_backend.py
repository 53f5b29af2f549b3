# python/torch_graft/default_backend.py: torch.compile without a backend means "graft".
"""PyTorch's default is a setting of a module that `import torch` does not load and that takes a
second to load. So the setting is made when the module is loaded, by Python's own import hooks."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_REGISTRY = "torch._dynamo.backends.registry"


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader) -> None:
        self._inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        _set_default(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _set_default(registry: Any) -> None:
    if registry.get_default_backend() == "inductor":
        registry.set_default_backend("graft")


def register() -> None:
    """Called once, by attach."""
    if _REGISTRY in sys.modules:
        _set_default(sys.modules[_REGISTRY])
    else:
        sys.meta_path.insert(0, _Finder())
