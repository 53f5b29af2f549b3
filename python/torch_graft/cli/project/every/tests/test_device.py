# tests/test_device.py: PyTorch on the device computes what it computes on the CPU.
from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F


def test_the_device_has_its_name() -> None:
    x = torch.ones(3, device="acme")
    assert x.device == torch.device("acme", 0)
    assert x.is_acme
    assert torch.acme.get_device_name(0) == "Acme emulated chip"


CALLS = {
    "add": lambda x: x + 2 * x,
    "relu": lambda x: torch.relu(x),
    "matmul": lambda x: x @ x.t(),
    "sum": lambda x: x.sum(0),
    "transposed": lambda x: (x.t() * 3).contiguous(),
    "sliced": lambda x: x[1:, ::2] - 1,
    "softmax": lambda x: x.softmax(1),
    "sort": lambda x: x.sort(1).values,
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_equal_the_cpus(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 9)
    expected = CALLS[name](x)
    torch.testing.assert_close(CALLS[name](x.to("acme")).cpu(), expected)


def test_copies_and_kernels_of_two_streams_keep_their_order() -> None:
    first, second = torch.acme.Stream(), torch.acme.Stream()
    host = torch.arange(1 << 20, dtype=torch.float32, pin_memory=True)
    with first:
        x = host.to("acme", non_blocking=True)
        done = first.record_event()
    with second:
        second.wait_event(done)
        y = x + 1
    second.synchronize()
    assert torch.equal(y.cpu(), host + 1)


def test_events_measure_the_device() -> None:
    start, end = torch.acme.Event(enable_timing=True), torch.acme.Event(enable_timing=True)
    start.record()
    torch.zeros(1 << 22, device="acme")
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def losses(model: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_a_model_trains_as_on_the_cpu() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    x = torch.randn(64, 8)
    labels = x[:, :3].argmax(1)
    found = losses(copy.deepcopy(model).to("acme"), x.to("acme"), labels.to("acme"))
    expected = losses(model, x, labels)
    assert expected[-1] < 0.5 * expected[0]
    assert found == pytest.approx(expected, rel=1e-3)
