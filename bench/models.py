"""Models that several tables time: GPT-2 small from its configuration, and a perceptron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Work = Callable[[], Any]


def gpt2(training: bool, batch: int, length: int = 128) -> Callable[[str], Work]:
    """A forward pass over tokens, or a step of AdamW; dropout is off, so that devices compare."""

    def make(device: str) -> Work:
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
        model = GPT2LMHeadModel(config).train(training).to(device)
        source = torch.Generator().manual_seed(1)
        tokens = torch.randint(config.vocab_size, (batch, length), generator=source).to(device)
        if not training:
            return lambda: inferred(model, tokens)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

        def step() -> Any:
            optimizer.zero_grad()
            loss = model(tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


def mlp(training: bool, batch: int = 128) -> Callable[[str], Work]:
    """784-512-512-10: a forward pass, or a step of SGD."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        ).to(device)
        source = torch.Generator().manual_seed(1)
        images = torch.randn(batch, 784, generator=source).to(device)
        labels = torch.randint(10, (batch,), generator=source).to(device)
        if not training:
            return lambda: inferred(model, images)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step() -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return make


def inferred(model: nn.Module, given: torch.Tensor) -> Any:
    with torch.inference_mode():
        return model(given)
