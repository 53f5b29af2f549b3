"""Small models that between them use every feature of a traced graph: name, factory, inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from digits import Net
from resnet50 import Bottleneck


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(12, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.SiLU(),
            nn.Linear(16, 5),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.layers(x), target)


class Counting(nn.Module):
    """Buffers that are changed in place, and dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(6))
        self.linear = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return nn.functional.dropout(self.linear(x) - self.mean, 0.5) / self.calls


class Views(nn.Module):
    """Views of views, split, expand, and writes into a part of a fresh tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).split(8, dim=-1)
        scores = q.unflatten(-1, (2, 4)).transpose(1, 2) @ k.unflatten(-1, (2, 4)).permute(
            0, 2, 3, 1
        )
        weights = scores.softmax(-1)
        mixed = (weights @ v.unflatten(-1, (2, 4)).transpose(1, 2)).transpose(1, 2).flatten(2)
        rows = torch.zeros_like(mixed)
        rows[:, 1:] = mixed[:, :-1]
        return rows + x[:, :1].expand_as(rows)


class Mutating(nn.Module):
    """Changes its second input in place."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        y = (x * self.weight).tanh()
        state.mul_(0.5).add_(y.detach())
        state[0].zero_()
        return y + state


class Aliasing(nn.Module):
    """Returns an input, a view of one, and two views of one result."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * self.weight
        return x, x.t(), y.view(-1), y[1:], x.shape[0] * 2  # type: ignore[return-value]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=1, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


class Mixed(nn.Module):
    """Under autocast, with a constant of the model's and reductions of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            y = self.linear(x).relu() * torch.tensor([1.0, 2.0] * 4, device=x.device)
        z = y.float()
        scaled = (z - z.amax(1, keepdim=True)).exp().log1p()
        return scaled.mean((0, 1)) + torch.where(z > 1, z, -z).sum() + z.var(1).clamp(0.1, 2).sum()


def _language(kind: str) -> nn.Module:
    import transformers

    sizes: dict[str, Any]
    if kind == "gpt2":
        sizes = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 32, "vocab_size": 64}
        config = transformers.GPT2Config(**sizes, use_cache=False)
        return transformers.GPT2LMHeadModel(config)
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2,
             "intermediate_size": 64, "max_position_embeddings": 32, "vocab_size": 64}  # fmt: skip
    return transformers.BertModel(transformers.BertConfig(**sizes))


class Language(nn.Module):
    """A transformers model from a config; the result is its first tensor."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.inner = _language(kind)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens)[0]


Case = tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, ...]]]


def _tokens() -> tuple[torch.Tensor, ...]:
    return (torch.randint(64, (3, 10)),)


CASES: dict[str, Case] = {
    "mlp": (MLP, lambda: (torch.randn(7, 12), torch.randint(5, (7,)))),
    "digits": (Net, lambda: (torch.rand(3, 1, 8, 8),)),
    "bottleneck": (
        lambda: Bottleneck(16, 8, 1), lambda: (torch.randn(2, 16, 8, 8),),
    ),
    "gpt2": (lambda: Language("gpt2"), _tokens),
    "bert": (lambda: Language("bert"), _tokens),
    "lstm": (Recurrent, lambda: (torch.randn(3, 5, 6),)),
    "counting": (Counting, lambda: (torch.randn(4, 6),)),
    "views": (Views, lambda: (torch.randn(3, 5, 8),)),
    "mutating": (Mutating, lambda: (torch.randn(3, 4), torch.randn(3, 4))),
    "aliasing": (Aliasing, lambda: (torch.randn(3, 4),)),
    "mixed": (Mixed, lambda: (torch.randn(6, 8),)),
}  # fmt: skip
