# python/torch_graft/device/random.py: the random-number functions of torch.graft.
"""Seeds and states of the devices' default generators."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_graft import _C
from torch_graft.device.indices import DeviceLike, device_index


def _generator(device: DeviceLike = None) -> torch.Generator:
    return _C.default_generator(device_index(device, optional=True))


def _checked(seed: int) -> int:
    """The seed, of the range that torch.manual_seed takes: negative ones count from 2**64 down."""
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"a seed must be between -2**63 and 2**64 - 1, got {seed}")
    return seed


def manual_seed(seed: int) -> None:
    """Seeds the current device; does nothing where there is none."""
    seed = _checked(seed)
    if _C.device_count() > 0:
        _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds every device, also those that are counted later. Opens none."""
    _C.seed_all(_checked(seed) % 2**64)


def seed() -> None:
    """Gives the current device a seed that nobody can foretell; does nothing where there is none."""
    if _C.device_count() > 0:
        _generator().seed()


def seed_all() -> None:
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    return _generator().initial_seed()


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """The state of a device's default generator, as bytes on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    _generator(device).set_state(new_state)


def _get_rng_state_offset(device: DeviceLike = None) -> int:
    """How much was drawn since the seed; torch.cuda has the two functions under these names."""
    return _generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: DeviceLike = None) -> None:
    _generator(device).set_offset(offset)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(i) for i in range(_C.device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
