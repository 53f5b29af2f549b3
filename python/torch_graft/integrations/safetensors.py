# python/torch_graft/integrations/safetensors.py: safetensors opens files on the device by its name.
"""safetensors has a list of names, but gives numbers to torch, for which they are devices of the accelerator."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    import safetensors
    import safetensors.torch

    @functools.wraps(original := safetensors.safe_open)
    def safe_open(filename: Any, framework: str, device: Any = "cpu", **more: Any) -> Any:
        return original(filename, framework, number(device), **more)

    def number(where: Any) -> Any:
        named = str(where).split(":")[0] == name
        return (torch.device(where).index or 0) if named else where

    name = device
    changes.replace_function(original, safe_open)


enable("safetensors")
