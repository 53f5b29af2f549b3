# python/torch_graft/process/distributed.py: the backend of torch.distributed for the device.
"""Registers the backend, named like the device type, and makes its process groups.

`torch.distributed.init_process_group()` finds it. A group takes tensors of the device and, through
Gloo, of the CPU.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import torch

from torch_graft import private_names as inside
from torch_graft.process import lone_ranks, simulation
from torch_graft.ve import NAME as SLOT

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup, Store

VARIABLE = "GRAFT_COLLECTIVES"
ENGINES = ("auto", "native", "staged")

_device: str = "graft"
_log = logging.getLogger("torch_graft.distributed")


def register(device: str) -> None:
    """Makes the backend known to torch.distributed; does nothing where PyTorch was built without."""
    global _device
    if not torch.distributed.is_available():
        return
    _device = device
    torch.distributed.Backend.register_backend(
        device, create, extended_api=True, devices=[device, "cpu", SLOT]
    )
    lone_ranks.watch(device)


def create(given: Any, options: Any = None) -> ProcessGroup:
    """What torch.distributed calls for a new group, on each of its ranks.

    A whole group and not the device's backend alone: without a backend argument PyTorch asks only
    for the accelerator's, and the group would refuse tensors of the CPU.
    """
    from torch.distributed import distributed_c10d as c10d

    from torch_graft import _C

    if not c10d.is_gloo_available():
        raise RuntimeError(
            f"the backend '{_device}' needs Gloo, which this build of PyTorch lacks: install another build"
        )
    if options is not None and not isinstance(options, _C.GroupOptions):
        raise TypeError(
            f"pg_options of the backend '{_device}' must be torch_graft._C.GroupOptions, "
            f"got {type(options).__name__}"
        )
    engine = os.environ.get(VARIABLE, "auto")
    if engine not in ENGINES:
        raise ValueError(f"{VARIABLE}={engine}: expected one of {', '.join(ENGINES)}")
    rank, size = given.group_rank, given.group_size
    mirrored = simulation.ranks() > 0
    _log.info("rank %d of %d joins group '%s': engine %s, timeout %s", rank, size, given.group_id,
              "mirrored" if mirrored else engine, given.timeout)  # fmt: skip
    host = _fake(given) if mirrored else _gloo(given, "cpu")
    backend = _C.ProcessGroup(
        _store(given, "device"), rank, size,
        _fake(given) if mirrored else _gloo(given, "staging"),
        _C.GroupOptions(_device, given.timeout, given.global_ranks_in_group, given.group_id,
                        "mirrored" if mirrored else engine),
    )  # fmt: skip
    group = c10d.ProcessGroup(given.store, rank, size)
    kinds = c10d.ProcessGroup.BackendType
    inside.set_default_group_backend(group, kinds.CUSTOM)
    inside.register_group_backend(
        group, torch.device("cpu"), kinds.GLOO, _checked(given, "cpu", host)
    )
    ours = _checked(given, _device, backend)
    for name in (_device, SLOT):  # tensors of the slot are tensors of the device that carries them
        inside.register_group_backend(group, torch.device(name), kinds.CUSTOM, ours)
    backend.tell_group(group)
    if not mirrored:
        lone_ranks.joined()
    return group


def _store(given: Any, name: str) -> Store:
    """A part of the group's store. torchrun may keep one store for ranks that it starts again."""
    from torch.distributed import PrefixStore

    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"{name}_{attempt}", given.store)


def _fake(given: Any) -> Any:
    """PyTorch's backend without other ranks, for tensors of the CPU where ranks are simulated."""
    return inside.make_fake_process_group(given.group_rank, given.group_size)


def _gloo(given: Any, name: str) -> Any:
    """Gloo among the group's ranks, under a name of its own in the store."""
    from torch.distributed import distributed_c10d as c10d

    gloo = c10d.ProcessGroupGloo(
        _store(given, f"gloo_{name}"), given.group_rank, given.group_size, timeout=given.timeout
    )
    # The first group has no list, and Gloo's split reads one.
    gloo.options.global_ranks_in_group = given.global_ranks_in_group or list(
        range(given.group_size)
    )
    gloo.options.group_name = given.group_id
    if name == "cpu":
        inside.number_sequences(gloo)
    return gloo


def _checked(given: Any, name: str, backend: Any) -> Any:
    """The backend, with TORCH_DISTRIBUTED_DEBUG=DETAIL under PyTorch's checks of every call."""
    from torch.distributed import distributed_c10d as c10d

    if c10d.get_debug_level() != c10d.DebugLevel.DETAIL or simulation.ranks() > 0:
        return backend
    return inside.process_group_wrapper(
        wrapped_pg=backend, store_prefix=given.group_id,
        store=c10d.PrefixStore(f"checks_{name}", given.store),
        rank=given.group_rank, world_size=given.group_size, timeout=given.timeout,
    )  # fmt: skip
