# python/torch_graft/offloading/twin.py: a model's modules over again, with other tensors.
"""All that is no tensor, module or container of these is the model's own object: hooks, flags, configurations."""

from __future__ import annotations

import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

Exchange = Callable[[torch.Tensor], torch.Tensor]
_CONTAINERS = (list, tuple, dict, OrderedDict)
_MISSING = object()


class Twin:
    """Follows the attributes of a model's modules, and brings back those that a call assigned.

    copy_of: the tensor that stands for one of the model's. host_of: the other way; of a tensor that
    the call made, a copy. One thread at a time.
    """

    def __init__(self, copy_of: Exchange, host_of: Exchange) -> None:
        self._copy_of, self._host_of = copy_of, host_of
        self._twins: dict[int, tuple[torch.nn.Module, torch.nn.Module]] = {}  # by id of the model's
        self._sources: dict[int, torch.nn.Module] = {}  # by id of the twin
        self._known: dict[int, tuple[torch.nn.Module, torch.nn.Module]] = {}

    def follow(self, root: torch.nn.Module) -> torch.nn.Module:
        """The twin of a module, with what the module has now; the same object each time."""
        self._known, self._twins, self._sources = self._twins, {}, {}
        found = self._twin(root)
        self._known = {}
        return found

    def bring_back(self) -> None:
        """Gives the model's modules what a call assigned to the twins'."""
        for source, twin in list(self._twins.values()):
            have, found = vars(source), vars(twin)
            for name in [name for name in have if name not in found]:
                del have[name]
            for name, value in list(found.items()):
                back, kept = self._exchanged(value, self._host_of, self._source), have.get(name)
                if _same(kept, back) and name in have:
                    continue
                if type(kept) is type(back) and isinstance(kept, list):
                    kept[:] = back
                elif type(kept) is type(back) and isinstance(kept, dict):
                    kept.clear()
                    kept.update(back)
                else:
                    have[name] = back

    def clear(self) -> None:
        """Drops what the twins hold."""
        for _, twin in (*self._twins.values(), *self._known.values()):
            vars(twin).clear()
        self._twins, self._sources, self._known = {}, {}, {}

    def _twin(self, source: torch.nn.Module) -> torch.nn.Module:
        if id(source) in self._twins:
            return self._twins[id(source)][1]
        if isinstance(source, torch.jit.ScriptModule):
            raise TypeError(
                f"a {type(source).__name__} of the model is scripted, and its tensors cannot be "
                "exchanged: offload the original module"
            )
        twin = self._known[id(source)][1] if id(source) in self._known else _new(type(source))
        self._twins[id(source)] = source, twin
        self._sources[id(twin)] = source
        have = vars(twin)
        for name, value in vars(source).items():
            made = self._exchanged(value, self._copy_of, self._twin)
            if made is value and isinstance(value, dict) and name in _TENSORS_AND_MODULES:
                made = type(value)(value)  # what a call puts there is brought back, not shared
            if not _same(have.get(name, _MISSING), made):
                have[name] = made
        for name in [name for name in have if name not in vars(source)]:
            del have[name]
        return twin

    def _source(self, twin: torch.nn.Module) -> torch.nn.Module:
        return self._sources.get(id(twin), twin)

    def _exchanged(
        self, value: Any, tensor: Exchange, module: Callable[[torch.nn.Module], torch.nn.Module]
    ) -> Any:
        """value with other tensors and modules; value itself where it has none."""
        if isinstance(value, torch.Tensor):
            return tensor(value)
        if isinstance(value, torch.nn.Module):
            return module(value)
        if isinstance(value, types.MethodType) and isinstance(value.__self__, torch.nn.Module):
            return types.MethodType(value.__func__, module(value.__self__))
        if isinstance(value, weakref.ref) and isinstance(value(), torch.Tensor):
            return weakref.ref(tensor(value()))
        if type(value) not in _CONTAINERS:
            return value
        members = list(value.values()) if isinstance(value, dict) else list(value)
        made = [self._exchanged(one, tensor, module) for one in members]
        if all(a is b for a, b in zip(members, made, strict=True)):
            return value
        if isinstance(value, dict):
            return type(value)(zip(value, made, strict=True))
        return type(value)(made)


_TENSORS_AND_MODULES = ("_parameters", "_buffers", "_modules")


def _new(kind: type) -> torch.nn.Module:
    made: torch.nn.Module = object.__new__(getattr(kind, "_graft_class", kind))
    return made


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one object, or containers of the same objects."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, types.MethodType):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    if isinstance(a, weakref.ref):
        return a() is b()
    if type(a) not in _CONTAINERS or len(a) != len(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(_same, a.values(), b.values()))
    return all(map(_same, a, b))
