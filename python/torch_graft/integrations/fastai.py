# python/torch_graft/integrations/fastai.py: fastai's batches, models and mixed precision go to the device by default.
from __future__ import annotations

import warnings
from typing import Any

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    from fastai import torch_core
    from fastai.callback.fp16 import MixedPrecision

    module = torch.get_device_module(device)

    def default_device(use: Any = -1) -> torch.device:
        """False, here or in defaults.use_cuda, means the CPU."""
        found = original(use)
        refused = torch_core.defaults.use_cuda is False or module.device_count() == 0
        return found if refused else torch.device(device, module.current_device())

    def before_fit(self: Any) -> None:
        if self.dls.device.type != device:
            return precision(self)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*CUDA is not available")
            precision(self)
        half = torch.float16 if self.kwargs["enabled"] else torch.bfloat16
        self.autocast = torch.autocast(device, dtype=half)
        self.learn.scaler = torch.amp.GradScaler(device, **self.kwargs)
        return None

    original = torch_core.default_device
    changes.replace_function(original, default_device)
    precision = changes.replace(MixedPrecision, "before_fit", before_fit)


enable("fastai")
