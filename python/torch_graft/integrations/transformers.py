# python/torch_graft/integrations/transformers.py: pipelines, the Trainer and device_map of transformers take the device.
"""With accelerate's integration: the Trainer asks accelerate for processes and device_map for memory."""

from __future__ import annotations

import functools
import os
from typing import Any

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.flex_attention import flex_attention
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    if (
        "ACCELERATE_TORCH_DEVICE" not in os.environ
    ):  # read where the Trainer chooses a single device
        changes.put(os.environ, "ACCELERATE_TORCH_DEVICE", device)
    from transformers.integrations import flex_attention as attention
    from transformers.pipelines.base import Pipeline
    from transformers.utils import import_utils

    module = torch.get_device_module(device)

    @functools.wraps(Pipeline.__init__)
    def start(self: Any, model: Any, *values: Any, device: Any = None, **named: Any) -> None:
        """A number, or nothing, means a device of the attached type."""
        mapped = getattr(model, "hf_device_map", None) is not None
        if (
            not mapped
            and module.device_count()
            and (device is None or (type(device) is int and device >= 0))
        ):
            device = torch.device(name, device or 0)
        original(self, model, *values, device=device, **named)

    def is_torch_bf16_gpu_available() -> bool:
        return module.device_count() > 0 or bf16()

    name = device
    original = changes.replace(Pipeline, "__init__", start)
    bf16 = import_utils.is_torch_bf16_gpu_available
    changes.replace_function(bf16, is_torch_bf16_gpu_available)
    changes.replace(attention, "flex_attention", flex_attention)


enable("transformers")
