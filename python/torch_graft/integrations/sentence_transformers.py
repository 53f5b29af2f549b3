# python/torch_graft/integrations/sentence_transformers.py: models of sentence-transformers go to the device by default.
from __future__ import annotations

import os

import torch

from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    from sentence_transformers.util import environment

    def get_device_name() -> str:
        count = torch.get_device_module(device).device_count()
        return f"{device}:{int(os.environ.get('LOCAL_RANK', 0)) % count}" if count else original()

    original = environment.get_device_name
    changes.replace_function(original, get_device_name)


enable("sentence_transformers")
