# tests/python/compiler/eager_comparison.py: what a call shows, and whether two calls show the same.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def close(got: Any, expected: Any, what: str, coarse: bool = False) -> None:
    """coarse: up to bfloat16's rounding, which a fused epilogue has once and eager has twice."""
    assert len(got) == len(expected), what
    relative, absolute = (1.6e-2, 4e-3) if coarse else (2e-4, 2e-5)
    for position, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs, f"{what}, {position}"
            continue
        size = theirs.detach().double().abs().max().item() if theirs.numel() > 0 else 1
        torch.testing.assert_close(
            mine.detach(), theirs.detach(), rtol=relative, atol=absolute * max(1, size), equal_nan=True,
            msg=lambda text, at=position: f"{what}, {at}: {text}",
        )  # fmt: skip


def loss_of(result: torch.Tensor) -> torch.Tensor:
    """Weights each number by another one, so that nothing cancels behind a norm."""
    weights = torch.arange(result.numel(), dtype=torch.float32, device=result.device).cos()
    return (result.float() * weights.view(result.shape)).sum()


def run(
    model: torch.nn.Module, call: Callable[..., Any], inputs: tuple[torch.Tensor, ...], train: bool
) -> list[Any]:
    """Everything that the call shows: results, gradients, inputs and buffers afterwards."""
    torch.manual_seed(3)
    results = call(*inputs)
    results = list(results) if isinstance(results, tuple | list) else [results]
    if train:
        wanted = [one for one in results if isinstance(one, torch.Tensor) and one.requires_grad]
        sum(loss_of(one) for one in wanted).backward()  # type: ignore[union-attr]
    gradients = [one.grad for one in (*model.parameters(), *inputs)] if train else []
    return [*results, *gradients, *inputs, *model.buffers()]


def launches_of(call: Callable[[], Any], device: str) -> int:
    """What one warm call gives to the device: kernels and library calls, or graphs of them."""
    module = torch.get_device_module(device)

    def so_far() -> int:
        found = module.statistics()
        return int(found["launches"] + found["graphs"])

    for _ in range(3):  # the second call is noted
        call()
    torch.accelerator.synchronize()
    before = so_far()
    call()
    torch.accelerator.synchronize()
    return so_far() - before
