# python/torch_graft/compiler/optimizing.py: optimize(), a module that runs compiled and stays the same module.
"""See docs/use/optimize.md. Nothing of Dynamo is imported before the first call on a device."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch

from torch_graft import _C
from torch_graft import private_names as inside

_MODES = ("inference", "training")
_DTYPES = (torch.float16, torch.bfloat16)


class Options(NamedTuple):
    """What optimize() was asked for."""

    mode: str
    dynamic: bool | None
    dtype: torch.dtype | None

    @property
    def training(self) -> bool:
        return self.mode == "training"


class Optimized:
    """What an optimized module's class has before its model's class."""

    __slots__ = ()
    _graft_own = ("_graft_options", "_graft_calls", "_graft_compiled")  # all else is the model's
    _graft_class: type[torch.nn.Module]
    _graft_options: Options
    _graft_calls: _C.TracedCalls
    _graft_compiled: Any

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return self._graft_class.forward(self, *args, **kwargs)
        found = self._graft_calls.call(self, args, kwargs)
        if found is not NotImplemented:
            return found
        from torch_graft.compiler.calling import call

        return call(self, args, kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self._graft_class, self._graft_options), dict(self.__dict__)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(dir(self._graft_class)))


_classes: dict[tuple[type, type], type] = {}


def class_of(base: Any, kind: type[torch.nn.Module]) -> type:
    """The class of base's modules of a kind; one per kind, so that types compare."""
    if (base, kind) not in _classes:
        attributes = {"_graft_class": kind, "__module__": kind.__module__, "__doc__": kind.__doc__,
                      "__slots__": base._graft_own}  # fmt: skip
        _classes[base, kind] = type(f"{base.__name__}{kind.__name__}", (base, kind), attributes)
    return _classes[base, kind]


def rebuilt(kind: type[torch.nn.Module], options: Options) -> torch.nn.Module:
    """An optimized module without its model's state: what pickle and deepcopy begin with."""
    made: Any = object.__new__(class_of(Optimized, kind))
    calls = _C.TracedCalls(64, not options.training, inside.library_impls)
    own = (options, calls, None)
    for name, value in zip(Optimized._graft_own, own, strict=True):
        object.__setattr__(made, name, value)
    return made


def module_of(model: Any) -> Any:
    """What calls a program of torch.export, whose parameters are the program's; else what was given."""
    return model.module() if isinstance(model, torch.export.ExportedProgram) else model


def optimize(
    model: torch.nn.Module | torch.export.ExportedProgram, *example_inputs: Any, mode: str = "inference",
    dynamic: bool | None = None, dtype: torch.dtype | None = None,
    device: str | torch.device | None = None, uncounted_writes: str = "checksum",
    resident: str | int = "auto",
) -> torch.nn.Module:  # fmt: skip
    """model, or the module of a program of torch.export, compiled: a module of the same attributes, so that whatever is done to one of them
    (train(), to(), a new weight) is done to both. Traced at its first call on a Graft device; on
    other devices it runs as model does.

    example_inputs: arguments of a call, to check it and, on the device, to compile it now. mode:
    "inference" runs as under torch.no_grad(). dynamic: sizes of inputs are symbols; None: once they
    have changed. dtype: float16 or bfloat16, computes as under torch.autocast. device: a device of
    Graft's that computes the calls of a model that stays on the CPU; uncounted_writes: "checksum",
    "copy" or "ignore", how it learns of weights written behind PyTorch's back; resident: "all"
    weights stay on the device, or so many bytes of them while the others stream through, or "auto":
    all if the device has room. Raises TypeError and ValueError for invalid arguments, RuntimeError
    for a device that does not exist.
    """
    model = module_of(model)
    _check(model, example_inputs, mode, dtype)
    if device is not None:
        from torch_graft.offloading.offloaded import offload

        options = Options(mode, dynamic, dtype)
        return offload(model, example_inputs, options, device, uncounted_writes, resident)
    optimized = rebuilt(type(model), Options(mode, dynamic, dtype))
    object.__setattr__(optimized, "__dict__", model.__dict__)
    if example_inputs and mode == "inference" and not model.training:
        from torch_graft.compiler.calling import on_device

        if on_device(optimized, example_inputs, {}):
            optimized(*example_inputs)
    return optimized


def _check(model: Any, inputs: tuple[Any, ...], mode: str, dtype: torch.dtype | None) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"optimize() takes a torch.nn.Module, got a {type(model).__name__}")
    name = type(model).__name__
    if hasattr(type(model), "_graft_class"):
        raise TypeError(f"the {name} is already optimized: give optimize() the original module")
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TypeError(
            "optimize() got a DistributedDataParallel: optimize the module first, then wrap it"
        )
    if isinstance(model, torch.jit.ScriptModule | inside.OptimizedModule):
        raise TypeError(f"a {name} is already compiled: give optimize() the original module")
    if mode not in _MODES:
        raise ValueError(f'mode must be "inference" or "training", got {mode!r}')
    if dtype is not None and dtype not in _DTYPES:
        raise ValueError(
            f"dtype must be torch.float16, torch.bfloat16 or None, got {dtype}: convert the model instead"
        )
    if inputs:
        try:
            inspect.signature(model.forward).bind(*inputs)
        except TypeError as error:
            raise TypeError(f"the example inputs do not fit {name}.forward(): {error}") from None
