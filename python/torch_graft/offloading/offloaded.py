# python/torch_graft/offloading/offloaded.py: a module on the CPU whose calls a device computes.
"""See docs/use/offloading.md."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torch_graft import _C
from torch_graft.attaching import attached_name
from torch_graft.compiler.optimizing import Options, class_of
from torch_graft.compiler.placing import of_graft
from torch_graft.offloading.residence import check_resident
from torch_graft.offloading.running import Runner, check_weight
from torch_graft.ve import NAME as SLOT


class Offloading(NamedTuple):
    """What offload() was asked for."""

    options: Options
    device: torch.device
    uncounted_writes: str
    resident: str | int


class Offloaded:
    """What an offloaded module's class has before its model's class."""

    __slots__ = ()
    _graft_own = ("_graft_offloading", "_graft_runner")
    _graft_class: type[torch.nn.Module]
    _graft_offloading: Offloading
    _graft_runner: Runner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling() or _C.calls_are_observed():
            return self._graft_class.forward(self, *args, **kwargs)
        return self._graft_runner(self, args, kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self._graft_class, self._graft_offloading), dict(self.__dict__)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(dir(self._graft_class)))


def rebuilt(kind: type[torch.nn.Module], offloading: Offloading) -> torch.nn.Module:
    """An offloaded module without its model's state: what pickle and deepcopy begin with."""
    made: Any = object.__new__(class_of(Offloaded, kind))
    object.__setattr__(made, "_graft_offloading", offloading)
    object.__setattr__(made, "_graft_runner", Runner(*offloading))
    return made


def offload(
    model: torch.nn.Module, example_inputs: tuple[Any, ...], options: Options,
    device: str | torch.device, uncounted_writes: str, resident: str | int,
) -> torch.nn.Module:  # fmt: skip
    """optimize(device=...) after its checks. Raises ValueError, RuntimeError and TypeError."""
    chosen = _device(device)
    check_resident(resident)
    for tensor in (*model.parameters(), *model.buffers()):
        check_weight(tensor)
    offloaded = rebuilt(type(model), Offloading(options, chosen, uncounted_writes, resident))
    object.__setattr__(offloaded, "__dict__", model.__dict__)
    if example_inputs and not options.training and not model.training:
        offloaded(*example_inputs)
    return offloaded


def _device(device: str | torch.device) -> torch.device:
    """A device of Graft's with its index."""
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device={device!r} names no device: {error}") from None
    if not of_graft(chosen):
        raise ValueError(
            f"device must be a device of Graft's, '{attached_name()}' or '{SLOT}', got {device!r}"
        )
    module = torch.get_device_module(chosen.type)
    count = module.device_count()
    index = chosen.index
    if index is None and count > 0:
        index = module.current_device()
    if index is None or index >= count:
        raise RuntimeError(
            f"device={device!r} does not exist: there are {count} devices of {chosen.type}. "
            "`python -m torch_graft doctor` says which drivers were found"
        )
    return torch.device(chosen.type, index)
