"""Mixed precision on the slot: torch.ve.amp."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

CASES: dict[str, Any] = {
    "lower": lambda a, b: a @ b,
    "lower in a list": lambda a, b: torch.chain_matmul(a, b, a),
    "float32": lambda a, b: (a @ b).exp(),
    "wider result": lambda a, b: (a @ b).softmax(0),
    "wider sum": lambda a, b: (a @ b).sum(),
    "appended dtype": lambda a, b: (a @ b).norm(),
    "promoted": lambda a, b: torch.cat([a @ b, a]),
    "promoted to the lower": lambda a, b: torch.stack([a @ b, b @ a]),
    "integers": lambda a, b: torch.cat([a.long(), b.long()]),
    "double": lambda a, b: a.double() @ b.double(),
    "unlisted": lambda a, b: a + b,
    "optional": lambda a, b: nn.functional.linear(a, b, b[0]),
    "layer norm": lambda a, b: nn.functional.layer_norm(a @ b, (4,), b[0], b[1]),
    "attention": lambda a, b: nn.functional.scaled_dot_product_attention(a[None], b[None], b[None]),
}


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_dtypes_are_torchs(ve: Any, name: str, dtype: torch.dtype) -> None:
    a, b = torch.rand(4, 4), torch.rand(4, 4)
    with ve.amp.autocast(dtype=dtype):
        got = CASES[name](a.ve(), b.ve())
    with torch.autocast("graft", dtype=dtype):
        plain = CASES[name](a.to("graft"), b.to("graft")) if torch.graft.device_count() else None
    if plain is not None:
        assert got.dtype == plain.dtype
        assert_close(got.cpu(), plain.cpu())
    assert_close(got.cpu().double(), CASES[name](a, b).double(), atol=0.05, rtol=0.05)


def test_weights_get_gradients_of_their_own_dtype(ve: Any) -> None:
    net = nn.Linear(4, 4).ve()
    with ve.amp.autocast():
        out = net(torch.rand(2, 4, device="ve"))
        assert out.dtype == torch.float16
        with ve.amp.autocast(enabled=False):
            assert net(torch.rand(2, 4, device="ve")).dtype == torch.float32
    out.float().sum().backward()
    assert net.weight.grad.dtype == torch.float32


def test_refuses_what_is_unsafe(ve: Any) -> None:
    x = torch.rand(3, device="ve")
    with ve.amp.autocast(), pytest.raises(RuntimeError, match="unsafe to autocast"):
        nn.functional.binary_cross_entropy(x, x)


def test_a_scaled_step(ve: Any) -> None:
    net = nn.Linear(3, 3).ve()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler = ve.amp.GradScaler(init_scale=8.0)
    assert isinstance(scaler, torch.amp.GradScaler)
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 8.0
    before = net.weight.detach().clone()
    with ve.amp.autocast():
        loss = net(torch.rand(3, 3, device="ve")).float().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0
    assert not torch.equal(net.weight, before)
    net.weight.grad.fill_(float("inf"))
    kept = net.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0
    assert torch.equal(net.weight, kept)


def test_own_functions_choose(ve: Any) -> None:
    class Matmul(torch.autograd.Function):
        @staticmethod
        @ve.amp.custom_fwd
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @ve.amp.custom_bwd
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.t(), a.t() @ grad

    a, b = (torch.rand(3, 3, device="ve", requires_grad=True) for _ in range(2))
    with ve.amp.autocast():
        assert Matmul.apply(a, b).dtype == torch.float16
    Matmul.apply(a, b).sum().backward()
    assert a.grad.dtype == torch.float32
