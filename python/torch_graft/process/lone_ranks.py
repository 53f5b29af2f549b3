# python/torch_graft/process/lone_ranks.py: one warning where a rank of several trains without the others.
"""Started on several ranks, a script that exchanges nothing trains one model in each, without a word.

accelerate without its integration makes a process group and does not use it, so a group alone says little:
at the first step of an optimizer something must have gone through it.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch
from torch.optim import optimizer

from torch_graft import private_names as inside
from torch_graft.ve import NAME as SLOT

REMEDY = (
    "so gradients are not exchanged. Start the script by `python -m torch_graft run`, import the library's module of "
    "torch_graft.integrations, or"
)
_groups = 0  # made by this process so far


def joined() -> None:
    """A group of ranks was made."""
    global _groups
    _groups += 1


def watch(device: str) -> None:
    """If the environment names several ranks, looks for their exchange at the first backward pass and step on a device."""
    size = os.environ.get("WORLD_SIZE", "")
    if not size.isdecimal() or int(size) < 2:
        return
    from torch_graft import _C

    def warn(lacking: str) -> None:
        warnings.warn(
            f"rank {os.environ.get('RANK', '?')} of {size} trains alone: WORLD_SIZE is {size} and {lacking}",
            stacklevel=4,
        )

    decided = False

    def without_group() -> bool:
        nonlocal decided
        decided = not torch.distributed.is_initialized()
        if decided:
            warn(
                f"there is no process group, {REMEDY} call torch.distributed.init_process_group()."
            )
        return decided

    def before_step(stepped: Any, *_: Any) -> None:
        """Stays for good: the hooks are being iterated when it could be removed."""
        nonlocal decided
        if decided:
            return
        places = (p.device.type for group in stepped.param_groups for p in group["params"])
        if not any(place in (device, SLOT) for place in places):
            return
        _C.unwatch_backward()
        if not without_group():
            decided = True
            if _idle(device):
                warn(f"its process group did nothing before the first step, {REMEDY} wrap the "
                     "model in DistributedDataParallel.")  # fmt: skip

    optimizer.register_optimizer_step_pre_hook(before_step)
    _C.watch_first_backward(without_group)


def _idle(device: str) -> bool:
    """True if the only group is one of the device's and no collective was called. Parts of groups are not looked at."""
    from torch.distributed import group

    world = group.WORLD
    if world is None or _groups != 1 or world.bound_device_id is not None:
        return False
    kinds = (torch.device(device), torch.device("cpu"))
    return not any(inside.sequence_number(inside.group_backend(world, kind)) for kind in kinds)
