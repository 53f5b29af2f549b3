# python/torch_graft/integrations/ultralytics.py: YOLO's device="graft".
from __future__ import annotations

from typing import Any

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    from ultralytics.utils import checks, torch_utils

    def select_device(wanted: Any = "", newline: bool = False, verbose: bool = True) -> Any:
        if str(wanted).split(":")[0] != device:
            return select(wanted, newline=newline, verbose=verbose)
        chosen = torch.device(device, torch.device(str(wanted)).index or 0)
        torch.get_device_module(device).set_device(chosen)
        return chosen

    def check_amp(model: Any) -> bool:
        """Off: the trainer's scaler of gradients is CUDA's."""
        return next(model.parameters()).device.type != device and amp(model)

    select, amp = torch_utils.select_device, checks.check_amp
    changes.replace_function(select, select_device)
    changes.replace_function(amp, check_amp)


enable("ultralytics")
