"""What PyTorch composes for most devices, and fuses for those of its lists, is fused on ve, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close


def tokens(device: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(sizes).numel()).view(sizes).to(device, dtype)


def attention(device: str, **options: Any) -> torch.Tensor:
    q = tokens(device, 2, 3, 5, 4).requires_grad_()
    mask = options.pop("mask", None)
    if mask is not None:
        options["attn_mask"] = mask.to(device)
    result = F.scaled_dot_product_attention(q, q * 2, q + 1, **options)
    (gradient,) = torch.autograd.grad(result.square().sum(), q)
    return torch.cat([result, gradient])


def dropped(device: str) -> torch.Tensor:
    x = tokens(device, 40, 30).requires_grad_()
    result = F.dropout(x, 0.3)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    return torch.cat([result, gradient])


WORK: dict[str, Callable[[str], torch.Tensor]] = {
    "dropout": dropped,
    "attention": attention,
    "causal": lambda d: attention(d, is_causal=True),
    "scale": lambda d: attention(d, scale=0.3),
    "mask of bool": lambda d: attention(d, mask=torch.ones(5, 5).tril().bool()),
    "mask of float": lambda d: attention(d, mask=tokens("cpu", 2, 1, 5, 5)),
    "dropout in attention": lambda d: attention(d, dropout_p=0.4),
}


@pytest.mark.parametrize("name", WORK)
def test_one_seed_gives_what_the_carrying_device_gives(name: str) -> None:
    found, launches = [], []
    for device, module in (("graft:0", torch.graft), ("ve:0", torch.ve)):
        torch.manual_seed(4)
        WORK[name](device)
        before = module.statistics()["launches"]
        found.append(WORK[name](device).cpu())
        module.synchronize()
        launches.append(module.statistics()["launches"] - before)
    assert torch.equal(found[0], found[1])
    assert launches[1] <= launches[0]


@pytest.mark.parametrize("name", [name for name in WORK if "dropout" not in name])
def test_as_on_the_cpu(name: str) -> None:
    assert_close(WORK[name]("ve").cpu(), WORK[name]("cpu"), rtol=1e-4, atol=1e-5)


def test_inference_mode() -> None:
    with torch.inference_mode():
        q = tokens("ve", 1, 2, 5, 4)
        assert_close(
            F.scaled_dot_product_attention(q, q, q).cpu(),
            F.scaled_dot_product_attention(*[q.cpu()] * 3), rtol=1e-4, atol=1e-5,
        )  # fmt: skip
        assert F.dropout(q, 0.5).device == q.device


def test_what_is_wrong_is_said_as_on_the_cpu() -> None:
    q = tokens("ve", 1, 2, 5, 4)
    for options in ({"is_causal": True, "attn_mask": torch.ones(5, 5, device="ve")},
                    {"attn_mask": torch.ones(5, 5, dtype=torch.int64, device="ve")},
                    {"attn_mask": torch.ones(5, 5)}):  # fmt: skip
        with pytest.raises(RuntimeError):
            F.scaled_dot_product_attention(q, q, q, **options)
    with pytest.raises(RuntimeError, match="same device"):
        F.scaled_dot_product_attention(q, q.cpu(), q)
    with pytest.raises(RuntimeError, match="dropout probability"):
        torch.dropout(q, 1.5, True)


def test_other_masks_and_ranks_take_the_composition() -> None:
    for device in ("ve", "cpu"):
        mask = tokens(device, 5, 5).requires_grad_()
        q = tokens(device, 2, 5, 4)
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum().backward()
        assert mask.grad is not None
        assert mask.grad.device.type == device
