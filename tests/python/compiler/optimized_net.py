# tests/python/compiler/optimized_net.py: a small model and its optimized form, for tests of optimize().
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.testing import assert_close

import torch_graft

DEVICE = "graft"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 2.0
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)
        with torch.no_grad():
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)) * self.scale)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y if y.sum() > 0 else -y


def image(batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, 3, 8, 8, device=DEVICE)


def fresh() -> Iterator[None]:
    """For a fixture: one seed, no warning, nothing of Dynamo's left behind."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    torch._dynamo.reset()


def pair() -> tuple[Net, nn.Module]:
    model = Net().eval().to(DEVICE)
    return model, torch_graft.optimize(model)


def check(model: nn.Module, optimized: nn.Module, *args: Any) -> None:
    with torch.no_grad():
        assert_close(optimized(*args), model(*args), rtol=1e-4, atol=1e-4)


def hits(optimized: nn.Module) -> int:
    return optimized._graft_calls.hits
