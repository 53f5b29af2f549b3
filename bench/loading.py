"""Data loading with pinned memory, as a case of two sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from cases import Case

IMAGES, SIDE, BATCH = 256, 64, 32


def make_epoch(device: str) -> Callable[[], Any]:
    """An epoch of a small network over batches of a worker: pinned and copied, or on the CPU."""
    images = torch.randn(IMAGES, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(
        TensorDataset(images), BATCH, num_workers=1, persistent_workers=True,
        pin_memory=device != "cpu",
    )  # fmt: skip
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).to(device)  # fmt: skip

    @torch.no_grad()
    def epoch() -> float:
        total = torch.zeros((), device=device)
        for (batch,) in loader:
            total += model(batch.to(device, non_blocking=True)).sum()
        return total.item()

    return epoch


LOADING = {"data loading": Case("data loading", 1.0, make_epoch)}
