"""Compiled and optimized models on the slot."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from torch_graft import _C


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_forward_and_backward() -> None:
    function = torch.compile(lambda x, w: torch.relu(x @ w).softmax(0), fullgraph=True)
    for device in ("ve:0", "ve:1"):
        x, w = (torch.rand(4, 4, device=device, requires_grad=True) for _ in range(2))
        a, b = (one.detach().cpu().requires_grad_() for one in (x, w))
        got = function(x, w)
        got.pow(2).sum().backward()
        wanted = torch.relu(a @ b).softmax(0)
        wanted.pow(2).sum().backward()
        assert got.device == torch.device(device)
        assert_close(got.cpu(), wanted)
        assert_close(x.grad.cpu(), a.grad)
        assert_close(w.grad.cpu(), b.grad)


def test_writes_sizes_and_devices() -> None:
    @torch.compile(dynamic=True)
    def function(x, y):
        y.add_(1)
        return x * 2 + torch.arange(x.shape[0], device=x.device)[:, None], torch.zeros(
            2, device=x.device
        )

    for count in (3, 5, 7):
        x, y = torch.rand(count, 2, device="ve:1"), torch.zeros(3, device="ve:1")
        first, second = function(x, y)
        assert_close(first.cpu(), x.cpu() * 2 + torch.arange(count)[:, None])
        assert second.device == torch.device("ve", 1)
        assert y.tolist() == [1, 1, 1]


def test_random_numbers() -> None:
    @torch.compile
    def function(x):
        return nn.functional.dropout(x, 0.5), torch.rand_like(x)

    x = torch.ones(64, device="ve")
    torch.manual_seed(0)
    first = function(x)
    torch.manual_seed(0)
    second = function(x)
    assert_close(first, second, atol=0, rtol=0)
    assert not torch.equal(function(x)[1], first[1])


def test_the_current_device_inside() -> None:
    @torch.compile
    def function(x):
        with torch.ve.device(1):
            return x + 1, torch.ve.current_device()

    got, inside = function(torch.ones(3, device="ve:1"))
    assert got.device == torch.device("ve", 1)
    assert inside == 1


def test_dtypes_that_autocast_chooses(ve: Any) -> None:
    net = nn.Linear(4, 4).ve()
    compiled = torch.compile(net)
    x = torch.rand(2, 4, device="ve")
    with ve.amp.autocast(dtype=torch.bfloat16):
        got, wanted = compiled(x), net(x)
    assert got.dtype == wanted.dtype == torch.bfloat16
    assert_close(got, wanted, atol=0.02, rtol=0.02)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(288, 4),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_optimized_on_the_cpu_then_moved_then_called() -> None:
    model = Small()
    alone = copy.deepcopy(model).eval()
    optimized = torch_graft.optimize(model, torch.rand(2, 3, 8, 8))
    optimized.ve()
    optimized.eval()
    x = torch.rand(2, 3, 8, 8)
    for _ in range(3):
        got = optimized(x.ve())
        assert got.device == torch.device("ve", 0)
        assert_close(got.cpu(), alone(x), atol=1e-5, rtol=1e-5)
    assert optimized._graft_calls.hits >= 1
    clone = copy.deepcopy(optimized)
    assert_close(clone(x.ve()).cpu(), alone(x), atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        clone.layers[0].weight.zero_()
    assert_close(optimized(x.ve()).cpu(), alone(x), atol=1e-5, rtol=1e-5)
    optimized.to("ve:1")
    assert_close(optimized(x.ve(1)).cpu(), alone(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("device", ["ve:0", "ve:1"])
def test_weights_are_prepared_once_and_never_stale(device: str) -> None:
    model = Small().to(device).eval()
    optimized = torch_graft.optimize(model)
    x = torch.rand(2, 3, 8, 8, device=device)
    for _ in range(3):
        optimized(x)
    before = _C.TensorWatch([model.layers[0].weight])
    before.look()
    assert before.unchanged()
    assert before.trusted()
    for change in (
        lambda w: w.mul_(2),
        lambda w: w.set_(torch.rand_like(w)),
        lambda w: w.data.add_(1),
    ):
        with torch.no_grad():
            change(model.layers[0].weight)
        assert not before.unchanged()
        before.look()
        assert_close(optimized(x), model(x), atol=1e-4, rtol=1e-4)


def test_prologues_run_when_weights_change() -> None:
    ran = []

    def prologue(given):
        ran.append(1)
        return [given[0] * 2]

    prepared = _C.PreparedGraph(prologue, lambda given: [given[0] + given[2]], [1])
    for device in ("ve:0", "ve:1"):
        ran.clear()
        x, w = torch.ones(3, device=device), torch.ones(3, device=device)
        for _ in range(3):
            assert prepared([x, w])[0].tolist() == [3, 3, 3]
        assert len(ran) == 1
        w.add_(1)
        assert prepared([x, w])[0].tolist() == [5, 5, 5]
        assert len(ran) == 2
        side = torch.ve.Stream(int(device[-1]))
        side.wait_stream(torch.ve.current_stream(device))
        with torch.ve.stream(side):
            assert prepared([x, w])[0].tolist() == [5, 5, 5]
        assert len(ran) == 2


def test_optimized_training() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).ve()
    alone = copy.deepcopy(model)
    optimized = torch_graft.optimize(model, mode="training")
    x = torch.rand(2, 4, device="ve")
    for net, parameters in ((optimized, model.parameters()), (alone, alone.parameters())):
        step = torch.optim.Adam(parameters)
        for _ in range(4):
            step.zero_grad()
            net(x).square().sum().backward()
            step.step()
    assert_close([*model.parameters()], [*alone.parameters()], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_optimized_in_half_precision(dtype: torch.dtype) -> None:
    model = nn.Linear(4, 4).ve().eval()
    optimized = torch_graft.optimize(model, dtype=dtype)
    x = torch.rand(2, 4, device="ve")
    assert optimized(x).dtype == dtype
    assert_close(optimized(x).float(), model(x), atol=0.02, rtol=0.02)


def test_mixed_devices_are_named() -> None:
    optimized = torch_graft.optimize(nn.Linear(4, 4).ve().eval())
    with pytest.raises(RuntimeError, match=r"weight on ve:0, argument 0 on ve:1"):
        optimized(torch.rand(2, 4, device="ve:1"))
