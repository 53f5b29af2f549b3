# python/torch_graft/naming.py: which name the device type gets.
"""The device's name: GRAFT_DEVICE_NAME, else what a driver's package gives, else "graft"."""

from __future__ import annotations

import os
import re
import warnings

import torch

DEFAULT = "graft"


def flaw(name: str) -> str | None:
    """Why a name cannot be a device type's; None when it can."""
    if not re.fullmatch(r"[a-z_]+", name):
        return "PyTorch takes lower-case letters and underscores only"
    try:
        torch.device(name)
    except RuntimeError:
        taken = hasattr(torch, name)
    else:
        taken = True
    return f"PyTorch already has a '{name}'" if taken else None


def choose(offered: list[tuple[str, str]]) -> str:
    """Picks the first usable name; offered: (name, who offers it)."""
    wanted = os.environ.get("GRAFT_DEVICE_NAME")
    candidates = [(wanted, "GRAFT_DEVICE_NAME")] if wanted else []
    for name, source in candidates + offered:
        problem = flaw(name)
        if problem is None:
            return name
        warnings.warn(
            f"{source} asks for the device name '{name}', which cannot be: {problem}. Choose "
            "another one with GRAFT_DEVICE_NAME.",
            stacklevel=2,
        )
    return DEFAULT
