# python/torch_graft/integrations/lightning.py: Lightning, of the distribution lightning.
from __future__ import annotations

from torch_graft.integrations import lightning_device
from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    lightning_device.apply(changes, device, "lightning.pytorch", "lightning.fabric")


enable("lightning")
