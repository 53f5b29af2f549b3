# tests/python/deployment/steps_in_process.py: a network, its data, and steps of training in the process.
from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

Batch = tuple[torch.Tensor, torch.Tensor]


def network(dropout: float = 0.0) -> nn.Sequential:
    """Without a bias before batch norm: its gradients are roundings, which Adam makes large."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 16, bias=False),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(16, 3),
    )


def batches(device: str, count: int = 10, rows: int = 8) -> list[Batch]:
    torch.manual_seed(2)
    return [(torch.randn(rows, 6).to(device), torch.randint(0, 3, (rows,)).to(device))
            for _ in range(count)]  # fmt: skip


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(x), y)


def trained(
    model: nn.Module, optimizer: torch.optim.Optimizer, data: list[Batch],
    loss: Callable[..., torch.Tensor] = loss_of,
) -> torch.Tensor:  # fmt: skip
    """The losses of steps in the process."""
    losses = []
    for batch in data:
        optimizer.zero_grad()
        now = loss(model, *batch)
        now.backward()
        optimizer.step()
        losses.append(now.detach().cpu())
    return torch.stack(losses)


def stepped(step: nn.Module, data: list[Batch]) -> torch.Tensor:
    return torch.stack([step(*batch).cpu() for batch in data])
