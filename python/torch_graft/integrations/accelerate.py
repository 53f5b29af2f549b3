# python/torch_graft/integrations/accelerate.py: accelerate takes the device, its backend and mixed precision.
"""accelerate asks its own functions is_..._available() for a device; it has no registry for others."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    _state(changes, device)
    _mixed_precision(changes, device)
    _memory(changes, device)


def _state(changes: Changes, device: str) -> None:
    from accelerate.state import DistributedType, PartialState

    module = torch.get_device_module(device)

    def ours(state: Any) -> bool:
        named = state.device is None or state.device.type == device  # ACCELERATE_TORCH_DEVICE
        return named and not state._cpu and module.device_count() > 0

    def default_device(self: Any) -> torch.device:
        return torch.device(device, 0) if module.device_count() else default.fget(self)

    def prepare_backend(
        self: Any, cpu: bool = False, sagemaker_dp: Any = False, backend: Any = None
    ) -> Any:
        if cpu and self.device is not None and self.device.type == device:
            self.device = None  # ACCELERATE_TORCH_DEVICE would win over cpu=True
        rank = int(os.environ.get("LOCAL_RANK", -1))
        if rank < 0 or not ours(self):
            return prepare(self, cpu, sagemaker_dp, backend)
        if rank >= module.device_count():
            raise RuntimeError(
                f"rank {rank} of this machine has no device: '{device}' has {module.device_count()}. "
                "Start fewer ranks; GRAFT_HOST_DEVICES sets the number of simulated devices."
            )
        module.set_device(rank)  # before the process group is made
        return backend or device, DistributedType.MULTI_GPU

    def set_device(self: Any) -> None:
        if self.distributed_type == DistributedType.MULTI_GPU and ours(self):
            self.device = torch.device(device, self.local_process_index)
        else:
            original_set(self)

    default = changes.replace(PartialState, "default_device", property(default_device))
    prepare = changes.replace(PartialState, "_prepare_backend", prepare_backend)
    original_set = changes.replace(PartialState, "set_device", set_device)


def _mixed_precision(changes: Changes, device: str) -> None:
    from accelerate import Accelerator
    from accelerate.utils import modeling

    def get_grad_scaler(distributed_type: Any = None, **given: Any) -> Any:
        if torch.get_device_module(device).device_count() == 0:
            return scaler(distributed_type, **given)
        if distributed_type == "FSDP":
            from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

            return ShardedGradScaler(device=device, **given)
        return torch.amp.GradScaler(device, **given)

    @functools.wraps(Accelerator.__init__)
    def start(self: Any, *values: Any, **named: Any) -> None:
        """The list of devices for fp16 is inside __init__: it runs as without fp16, which is added here."""
        try:
            return original(self, *values, **named)
        except ValueError:
            state = self.__dict__.get("state")
            if state is None or state.mixed_precision != "fp16" or state.device.type != device:
                raise
        bound = inspect.signature(original).bind(self, *values, **named)
        bound.arguments["mixed_precision"] = state._mixed_precision = "no"
        try:
            original(*bound.args, **bound.kwargs)
        finally:
            state._mixed_precision = "fp16"
        self.native_amp = True
        options = self.scaler_handler.to_kwargs() if self.scaler_handler is not None else {}
        kind = None if self.is_fsdp2 else self.distributed_type
        self.scaler = get_grad_scaler(kind, **options)
        return None

    scaler = modeling.get_grad_scaler
    changes.replace_function(scaler, get_grad_scaler)
    original = changes.replace(Accelerator, "__init__", start)


def _memory(changes: Changes, device: str) -> None:
    from accelerate.utils import modeling

    module = torch.get_device_module(device)

    def get_max_memory(max_memory: Any = None) -> Any:
        """Numbers are devices of the attached type; accelerate would look for CUDA's."""
        count = module.device_count()
        if max_memory is None:
            found = original()
            free = {index: module.mem_get_info(index)[0] for index in range(count)}
            return (
                {**free, **{key: size for key, size in found.items() if not isinstance(key, int)}}
                if count
                else found
            )
        ours = {key: max_memory[key] for key in sorted(k for k in max_memory if k in range(count))}
        sizes = {key: modeling.convert_file_size_to_int(size) for key, size in ours.items()}
        return sizes | original({key: size for key, size in max_memory.items() if key not in ours})

    original = modeling.get_max_memory
    changes.replace_function(original, get_max_memory)


enable("accelerate")
