# tests/python/modules/test_fused.py: fused attention and recurrent cells against the CPU.
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

import torch_graft  # noqa: F401

pytestmark = [pytest.mark.any_driver, pytest.mark.gpu_class, pytest.mark.any_runtime]

DEVICE = "graft"


@contextlib.contextmanager
def native() -> Iterator[None]:
    """No operator inside may fall back to the CPU."""
    with torch.graft.fallback.forbid():
        yield


ATTENTION = [
    {},
    {"is_causal": True},
    {"interleaved": True, "scale": 0.7},
    {"attn_mask": torch.randn(37, 45)},
    {"attn_mask": torch.randn(2, 1, 37, 45)},
    {"attn_mask": torch.rand(37, 45) > 0.4},
    {"heads": 2, "enable_gqa": True, "is_causal": True},
    {"heads": 1, "enable_gqa": True, "interleaved": True},
]


def attention(device: str, dtype: torch.dtype, case: dict[str, Any]) -> list[torch.Tensor]:
    torch.manual_seed(3)
    options = dict(case)
    heads = options.pop("heads", 4)
    interleaved = options.pop("interleaved", False)
    tensors = []
    for h, n, d in ((4, 37, 8), (heads, 45, 8), (heads, 45, 6)):
        data = torch.randn(2, n, h, d).transpose(1, 2) if interleaved else torch.randn(2, h, n, d)
        tensors.append(data.to(dtype).to(device).requires_grad_())
    if "attn_mask" in options:
        options["attn_mask"] = options["attn_mask"].to(device)
        if options["attn_mask"].is_floating_point():
            options["attn_mask"] = options["attn_mask"].to(dtype)
    output = F.scaled_dot_product_attention(*tensors, **options)
    weights = torch.linspace(-1, 1, output.numel()).reshape(output.shape).to(dtype).to(device)
    output.backward(weights)
    return [t.detach().cpu() for t in (output, *(t.grad for t in tensors))]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
@pytest.mark.parametrize("case", ATTENTION, ids=lambda case: "-".join(case) or "plain")
def test_attention(case: dict[str, Any], dtype: torch.dtype) -> None:
    with sdpa_kernel(SDPBackend.MATH):
        expected = attention("cpu", dtype, case)
    with native():
        actual = attention(DEVICE, dtype, case)
    half = dtype in (torch.bfloat16, torch.float16)
    loose = {"rtol": 2e-2, "atol": 2e-2} if half else {"rtol": 1e-4, "atol": 1e-5}
    assert_close(actual, expected, **loose)


def test_attention_is_fused_and_drops_by_the_device_generator() -> None:
    query = torch.randn(1, 2, 64, 8, device=DEVICE, requires_grad=True)
    choice = torch._fused_sdp_choice(query, query, query)
    assert choice == int(SDPBackend.OVERRIDEABLE)
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        with native():
            results.append(F.scaled_dot_product_attention(query, query, query, dropout_p=0.5))
    assert torch.equal(*results)
    assert not torch.equal(results[0], F.scaled_dot_product_attention(query, query, query))
    with native():
        results[0].sum().backward()
    assert query.grad is not None
    assert torch.isfinite(query.grad).all()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_modules(kind: type[nn.RNNBase], bias: bool) -> None:
    torch.manual_seed(2)
    module = kind(5, 6, 2, bidirectional=True, bias=bias)
    x = torch.randn(7, 3, 5)
    results = []
    for device in ("cpu", DEVICE):
        copied = kind(5, 6, 2, bidirectional=True, bias=bias)
        copied.load_state_dict(module.state_dict())
        copied = copied.to(device)
        given = x.detach().to(device, copy=True).requires_grad_()
        with native():
            output, state = copied(given)
            last = state[1] if isinstance(state, tuple) else state
            (output.pow(2).sum() + last.sum()).backward()
        gradients = [p.grad for p in copied.parameters()]
        results.append(
            [t.cpu() for t in (output.detach(), given.grad, *gradients) if t is not None]
        )
    assert_close(results[1], results[0])
