"""A language model of bytes with about 5 million parameters, and its training on this repository's pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

PAGES = Path(__file__).resolve().parents[3] / "docs/use"
WIDTH, HEADS, LAYERS, LENGTH, BATCH = 256, 4, 6, 128, 16
STEPS, RATE = 160, 4e-3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.heads = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.joined = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        parts = self.heads(self.before(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joined(seen.transpose(1, 2).reshape(rows, length, WIDTH))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class ByteModel(nn.Module):
    """forward: bytes [rows, length], int64; logits [rows, length, 256]."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.last, self.logits = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.logits(self.last(self.blocks(self.bytes_(tokens) + self.places(places))))


def text() -> torch.Tensor:
    """The pages for users as bytes, int64."""
    pages = b"".join(page.read_bytes() for page in sorted(PAGES.glob("*.md")))
    return torch.frombuffer(bytearray(pages), dtype=torch.uint8).long()


def windows(source: torch.Tensor, count: int, draw: torch.Generator) -> torch.Tensor:
    starts = torch.randint(len(source) - LENGTH, (count,), generator=draw)
    return torch.stack([source[start : start + LENGTH + 1] for start in starts])


def loss(model: Callable[[torch.Tensor], torch.Tensor], given: torch.Tensor) -> torch.Tensor:
    """Of each byte after those before it, in nats."""
    logits = model(given[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), given[:, 1:].flatten())


def trained(device: str) -> tuple[ByteModel, float]:
    """The model on device, and the mean loss of its last ten steps."""
    torch.manual_seed(0)
    model = ByteModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), fused=True)
    compiled = torch.compile(model)
    source, draw = text(), torch.Generator().manual_seed(1)
    last = []
    for step in range(STEPS):
        share = min(1.0, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        now = loss(compiled, windows(source, BATCH, draw).to(device))
        optimizer.zero_grad()
        now.backward()
        optimizer.step()
        last = [*last[-9:], now.detach()]
    return model, torch.stack(last).mean().item()


def perplexity(model: Callable[[torch.Tensor], torch.Tensor], device: str) -> float:
    """Over windows that the training did not draw by the same numbers."""
    source, draw = text(), torch.Generator().manual_seed(2)
    with torch.no_grad():
        found = [loss(model, windows(source, BATCH, draw).to(device)) for _ in range(8)]
    return math.exp(torch.stack(found).mean().item())
