# python/torch_graft/naming.py: which name the device type gets.
"""The device's name: GRAFT_DEVICE_NAME, else what a driver's package gives, else "graft"."""

from __future__ import annotations

import keyword
import os
import re
import warnings

import torch

DEFAULT = "graft"
_FREE = "privateuseone"  # the name of PyTorch's slot for a device type while nobody has it


def flaw(name: str) -> str | None:
    """Why a name cannot be a device type's; None when it can."""
    if not re.fullmatch(r"[a-z][a-z_]*", name):
        return "PyTorch takes lower-case letters and underscores only, a letter first"
    if keyword.iskeyword(name):
        return f"'{name}' is a keyword of Python, so torch.{name} would be a syntax error"
    if name == _FREE:
        return "PyTorch uses this name for a device type without a name"
    try:
        torch.device(name)
    except RuntimeError:
        return _taken_attribute(name)
    return f"PyTorch has a device type '{name}' already"


def _taken_attribute(name: str) -> str | None:
    """What PyTorch would find in the way when it makes torch.<name>, tensor.<name>() and others."""
    for owner, where in ((torch, "torch"), (torch.Tensor, "torch.Tensor"),
                         (torch.nn.Module, "torch.nn.Module"),
                         (torch.UntypedStorage, "torch.UntypedStorage"),
                         (torch.TypedStorage, "torch.TypedStorage"),
                         (torch.nn.utils.rnn.PackedSequence, "PackedSequence")):  # fmt: skip
        for attribute in (name, f"is_{name}"):
            if hasattr(owner, attribute):
                return f"PyTorch already has {where}.{attribute}"
    return None


def choose(offered: list[tuple[str, str]]) -> str:
    """Picks the first usable name; offered: (name, who offers it). Warns of the others before it."""
    wanted = os.environ.get("GRAFT_DEVICE_NAME")
    candidates = [(wanted, "GRAFT_DEVICE_NAME")] if wanted else []
    refused = []
    chosen = DEFAULT
    for name, source in candidates + offered:
        problem = flaw(name)
        if problem is None:
            chosen = name
            break
        refused.append(
            f"{source} asks for the device name '{name}', which is not possible: {problem}."
        )
    for text in refused:
        warnings.warn(
            f"{text} The device is called '{chosen}' instead. Choose another name with "
            "GRAFT_DEVICE_NAME.",
            stacklevel=2,
        )
    return chosen
