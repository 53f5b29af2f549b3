# python/torch_graft/device/amp.py: torch.graft.amp: torch.amp with the device type filled in.
"""Mixed precision under the names of torch.cuda.amp, for scripts that change the device's name only."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from torch_graft import private_names as inside

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

Function = Callable[..., Any]


def _device_type() -> str:
    name: str = inside.privateuse1_name()
    return name


def autocast(
    enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
) -> torch.autocast:
    """torch.autocast of this device type."""
    return torch.autocast(_device_type(), enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler of this device type; without a device it warns and does nothing."""

    _type = staticmethod(_device_type)

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        name = self._type()
        if enabled and not torch.get_device_module(name).is_available():
            warnings.warn(
                f"torch.{name}.amp.GradScaler is enabled, but there is no device. Disabling.",
                stacklevel=2,
            )
            enabled = False
        super().__init__(name, init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Function | None = None, *, cast_inputs: torch.dtype | None = None) -> Function:
    """torch.amp.custom_fwd of this device type."""
    made: Function = torch.amp.custom_fwd(fwd, device_type=_device_type(), cast_inputs=cast_inputs)
    return made


def custom_bwd(bwd: Function | None = None) -> Function:
    """torch.amp.custom_bwd of this device type."""
    made: Function = torch.amp.custom_bwd(bwd, device_type=_device_type())
    return made
