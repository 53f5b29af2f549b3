"""Whole networks at small sizes, as users compile them: name, factory, inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from digits import Net
from resnet50 import ResNet50
from traced_models import Language

Network = tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]


class Recurrent(nn.Module):
    """Two layers, one of them read backwards, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.table(tokens))
        return self.head(states.mean(1))


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Ronneberger et al. 2015, arXiv 1505.04597: down, up by transposed convolutions, shortcuts."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 32)
        self.down = nn.ModuleList([_twice(a, b) for a, b in zip((3, 8), widths, strict=False)])
        self.bottom = _twice(16, 32)
        self.rise = nn.ModuleList([nn.ConvTranspose2d(2 * one, one, 2, 2) for one in (16, 8)])
        self.up = nn.ModuleList([_twice(2 * one, one) for one in (16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for rise, block in zip(self.rise, self.up, strict=True):
            x = block(torch.cat([kept.pop(), rise(x)], 1))
        return self.head(x)


class ViT(nn.Module):
    """Dosovitskiy et al. 2020, arXiv 2010.11929: patches, a class token, encoder layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.first = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first.expand(len(x), -1, -1), tokens], 1) + self.places
        return self.head(self.body(tokens)[:, 0])


class Experts(nn.Module):
    """A block of four experts of which each token takes the best two, weighted; no size depends on
    the data: every expert sees every token."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4, bias=False)
        self.rise = nn.Parameter(torch.randn(4, 16, 32) / 4)
        self.fall = nn.Parameter(torch.randn(4, 32, 16) / 6)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.norm(x).flatten(0, 1)
        share, chosen = self.gate(tokens).softmax(-1).topk(2)
        share = share / share.sum(-1, keepdim=True)
        weights = torch.zeros(len(tokens), 4, device=x.device).scatter(1, chosen, share)
        hidden = F.silu(torch.einsum("td,edh->eth", tokens, self.rise))
        found = torch.einsum("eth,ehd->etd", hidden, self.fall)
        return x + (found * weights.t().unsqueeze(-1)).sum(0).view(x.shape)


def _images(size: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(2, 3, size, size),)


def _tokens() -> tuple[torch.Tensor, ...]:
    return (torch.randint(40, (3, 10)),)


NETWORKS: dict[str, Network] = {
    "ResNet-50": (ResNet50, _images(64)),
    "digits": (Net, lambda: (torch.rand(4, 1, 8, 8),)),
    "GPT-2": (lambda: Language("gpt2"), _tokens),
    "BERT": (lambda: Language("bert"), _tokens),
    "LSTM": (Recurrent, _tokens),
    "U-Net": (UNet, _images(16)),
    "ViT": (ViT, _images(16)),
    "experts": (Experts, lambda: (torch.randn(2, 6, 16),)),
}  # fmt: skip
