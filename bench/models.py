"""Models that several tables time: GPT-2 small from its configuration, and a perceptron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Work = Callable[[], Any]


def stepping(optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> Work:
    """A step of training; it gives the loss."""

    def step() -> Any:
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
        return found.detach()

    return step


def gpt2_model() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    )


def perceptron() -> nn.Module:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers)


def gpt2(training: bool, batch: int, length: int = 128) -> Callable[[str], Work]:
    """A forward pass over tokens, or a step of AdamW; dropout is off, so that devices compare."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        model = gpt2_model().train(training).to(device)
        source = torch.Generator().manual_seed(1)
        tokens = torch.randint(model.config.vocab_size, (batch, length), generator=source).to(
            device
        )
        if not training:
            return lambda: inferred(model, tokens)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        return stepping(optimizer, lambda: model(tokens, labels=tokens).loss)

    return make


def mlp(training: bool, batch: int = 128) -> Callable[[str], Work]:
    """784-512-512-10: a forward pass, or a step of SGD."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        model = perceptron().to(device)
        source = torch.Generator().manual_seed(1)
        images = torch.randn(batch, 784, generator=source).to(device)
        labels = torch.randint(10, (batch,), generator=source).to(device)
        if not training:
            return lambda: inferred(model, images)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return stepping(optimizer, lambda: F.cross_entropy(model(images), labels))

    return make


def inferred(model: nn.Module, given: torch.Tensor) -> Any:
    with torch.inference_mode():
        return model(given)
