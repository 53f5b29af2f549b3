# python/torch_graft/integrations/transformers.py: pipelines, the Trainer, device_map and generate() of transformers take the device.
"""With accelerate's integration: the Trainer asks accelerate for processes and device_map for memory."""

from __future__ import annotations

import copy
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
    compile_fixed_caches(changes, device)
    batch_on_one_stream(changes, device)


def compile_fixed_caches(changes: Changes, device: str) -> None:
    """generate() compiles its forward pass with a cache of a fixed length, as on the devices that the library lists."""
    from transformers import CompileConfig, GenerationMixin, PreTrainedModel

    def compiles(self: Any, inputs: dict[str, Any], chosen: Any) -> bool:
        fixed = getattr(inputs.get("past_key_values"), "is_compileable", False)
        if self.device.type == device and (fixed or chosen.compile_config is not None):
            chosen = copy.copy(chosen)
            chosen.compile_config = copy.copy(chosen.compile_config) or CompileConfig()
            chosen.compile_config._compile_all_devices = True
        return bool(original(self, inputs, chosen))

    def get_compiled_call(self: Any, chosen: Any) -> Any:
        """The library names Inductor, which writes no code for the device."""
        if self.device.type == device:
            chosen = copy.copy(chosen) or CompileConfig()
            if chosen.backend == "inductor":
                chosen.backend = "graft"
        return compiled(self, chosen)

    original = changes.replace(GenerationMixin, "_valid_auto_compile_criteria", compiles)
    compiled = changes.replace(PreTrainedModel, "get_compiled_call", get_compiled_call)


def batch_on_one_stream(changes: Changes, device: str) -> None:
    """generate_batch() computes on the stream that it writes its inputs on: no event orders its own stream after them."""
    from transformers.generation.continuous_batching import input_outputs

    def create_device_stream(place: torch.device) -> Any:
        return None if place.type == device else original(place)

    original = changes.replace(input_outputs, "create_device_stream", create_device_stream)


enable("transformers")
