"""Runs networks compiled for the chip and on the CPU; fails where they differ.

CASES: names from MODELS with commas. Prints a line for each graph: who ran how many of its nodes.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests/python/compiler")]

import torch_graft.compiler as graft_compiler  # noqa: E402
from resnet50 import ResNet50  # noqa: E402

D = os.environ["DEVICE"]
Tensors = list[torch.Tensor]


class GPT2(nn.Module):
    """Without dropout, whose numbers the chip does not draw."""

    def __init__(self) -> None:
        super().__init__()
        import transformers

        sizes = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 32, "vocab_size": 64}
        none = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
        config = transformers.GPT2Config(**sizes, **none, use_cache=False, eos_token_id=63,
                                         bos_token_id=63)  # fmt: skip
        self.inner = transformers.GPT2LMHeadModel(config)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens)[0]


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(self.body(x), -1)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "ResNet-50": (ResNet50, lambda: torch.randn(2, 3, 64, 64)),
    "GPT-2": (GPT2, lambda: torch.randint(64, (2, 10))),
    "MLP": (MLP, lambda: torch.randn(5, 6)),
}


def shown(model: nn.Module, call: Callable[..., torch.Tensor], x: torch.Tensor) -> Tensors:
    """The result, and in training the gradients and buffers."""
    if not model.training:
        with torch.no_grad():
            return [call(x).cpu()]
    result = call(x)
    weights = torch.arange(result.numel(), dtype=result.dtype, device="cpu").cos()
    (result * weights.to(result.device).view(result.shape)).sum().div(result.numel()).backward()
    kept = [one.grad for one in model.parameters() if one.grad is not None]
    return [one.detach().cpu() for one in (result, *kept, *model.buffers())]


def error_of(seen: Tensors, exact: Tensors) -> float:
    """The mean of the tensors' errors, each relative to its own size."""
    pairs = [(a.double(), b.double()) for a, b in zip(seen, exact, strict=True)]
    found = [float((a - b).norm() / b.norm()) for a, b in pairs if b.any()]
    return sum(found) / len(found)


def check(name: str, mode: str) -> None:
    make, draw = MODELS[name]
    torch.manual_seed(0)
    model, x = make().train(mode == "training"), draw()
    wide = copy.deepcopy(model).double()
    exact = shown(wide, wide, x.double() if x.is_floating_point() else x)
    own = copy.deepcopy(model).to(D)
    expected = shown(model, model, x)
    seen = shown(own, torch.compile(own, fullgraph=True), x.to(D))
    print(name, mode, "error", error_of(seen, exact), "of the CPU", error_of(expected, exact))
    if name == "ResNet-50":  # fifty batch norms amplify the last bit of a sum, the CPU's, too
        assert error_of(seen, exact) <= 1.5 * error_of(expected, exact) + 1e-6
    else:
        torch.testing.assert_close(seen, expected)


def report(name: str) -> None:
    for one in graft_compiler.reports():
        counts = one.counts()
        assert counts is not None, one
        rest = counts.nodes - counts.vendor
        print(f"{name} {one.part}: {counts.vendor} of {counts.nodes} nodes in "
              f"{counts.vendor_graphs} graphs of the chip, {rest} outside: {counts.eager}")  # fmt: skip
    graft_compiler.reset_reports()


for case in os.environ["CASES"].split(","):
    for mode in ("inference", "training"):
        torch._dynamo.reset()
        check(case, mode)
        report(f"{case} {mode}")
print("equal")
