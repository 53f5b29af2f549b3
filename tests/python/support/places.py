"""The devices that tests of the slot move tensors between."""

from __future__ import annotations

import torch


def neighbours() -> list[str]:
    """Other places than ve:0; without graft's devices where the slot alone has them."""
    return ["cpu", "ve:1", *[f"graft:{index}" for index in range(torch.graft.device_count())]]
