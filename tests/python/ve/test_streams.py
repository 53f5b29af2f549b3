"""Streams, events and captured graphs of the slot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close


def slow(x: torch.Tensor) -> torch.Tensor:
    for _ in range(60):
        x = (x @ x).softmax(0)
    return x


@pytest.fixture
def square(ve: Any) -> torch.Tensor:
    x = torch.rand(500, 500, device="ve")
    ve.synchronize()
    return x


def test_streams_are_the_slots(ve: Any) -> None:
    side = ve.Stream(1)
    assert side.device == torch.device("ve", 1)
    assert ve.current_stream(1) == ve.default_stream(1)
    with ve.stream(side):
        assert ve.current_device() == 1
        assert ve.current_stream() == side
        assert torch.ones(1, device="ve").get_device() == 1
    assert ve.current_device() == 0
    assert ve.current_stream(1) == ve.default_stream(1)
    ve.set_stream(side)
    assert ve.current_stream(1) == side
    ve.set_stream(ve.default_stream(1))
    with ve.stream(None):
        assert ve.current_device() == 0

    class Foreign:
        device = torch.device("cpu")

    with pytest.raises(ValueError, match="Expected a stream of a ve device"):
        ve.set_stream(Foreign())


def test_events_follow_the_order_of_streams(ve: Any, square: torch.Tensor) -> None:
    side = ve.Stream()
    first, last = ve.Event(enable_timing=True), ve.Event(enable_timing=True)
    with ve.stream(side):
        first.record()
        x = slow(square)
        last.record()
    ve.current_stream().wait_event(last)
    total = x.sum() * 1
    last.synchronize()
    assert last.query()
    assert first.elapsed_time(last) > 0
    assert_close(total.cpu(), slow(square.cpu()).sum())


def test_work_is_behind_the_caller(python: Any) -> None:
    found = python(
        """
        import json, torch
        x, side = torch.rand(1500, 1500, device="ve"), torch.ve.Stream()
        torch.ve.synchronize()
        with torch.ve.stream(side):
            for _ in range(12):
                y = x @ x
            done = side.record_event()
        behind = [done.query(), side.query(), torch.ve.current_stream().query()]
        done.synchronize()
        print(json.dumps([*behind, done.query(), side.query()]))
        """,
        GRAFT_HOST_MODE="async",
    ).value()
    assert found == [False, False, True, True, True]


def test_streams_wait_for_streams(ve: Any, square: torch.Tensor) -> None:
    side = ve.Stream()
    x = slow(square)
    side.wait_stream(ve.current_stream())
    with ve.stream(side):
        y = x + 1
    side.synchronize()
    assert_close(y.cpu(), slow(square.cpu()) + 1)
    ve.current_stream().synchronize()
    assert ve.current_stream().query()


def test_copies_to_the_host_can_be_late(ve: Any, square: torch.Tensor) -> None:
    target = torch.empty(500, 500).pin_memory()
    x = slow(square)
    target.copy_(x, non_blocking=True)
    ve.synchronize()
    assert_close(target, slow(square.cpu()))


def test_graphs_replay(ve: Any) -> None:
    x = torch.ones(4, device="ve")
    graph = ve.Graph()
    with ve.graph(graph):
        assert ve.is_current_stream_capturing()
        y = x * 2 + 1
        z = torch.rand(4, device="ve")
    assert not ve.is_current_stream_capturing()
    x.fill_(5)
    graph.replay()
    ve.synchronize()
    assert y.tolist() == [11] * 4
    drawn = z.tolist()
    graph.replay()
    ve.synchronize()
    assert z.tolist() != drawn


def test_graphs_of_the_second_device(ve: Any) -> None:
    with ve.device(1):
        x = torch.ones(4, device="ve")
        graph, side = ve.Graph(), ve.Stream()
        with ve.graph(graph, stream=side):
            y = x * 3
        x.fill_(2)
        graph.replay()
        ve.synchronize()
    assert y.device == torch.device("ve", 1)
    assert y.tolist() == [6] * 4


def test_graphed_callables(ve: Any) -> None:
    net = nn.Linear(4, 4).ve()
    alone = nn.Linear(4, 4)
    alone.load_state_dict(net.state_dict())
    x = torch.rand(2, 4, device="ve", requires_grad=True)
    graphed = ve.make_graphed_callables(net, (x,))
    for _ in range(3):
        given, other = torch.rand(2, 4, requires_grad=True), torch.rand(2, 4)
        there = given.detach().ve().requires_grad_()
        got, wanted = graphed(there), alone(given)
        net.zero_grad()
        alone.zero_grad()
        got.backward(other.ve())
        wanted.backward(other)
        assert_close(got.cpu(), wanted)
        assert_close([net.weight.grad.cpu(), there.grad.cpu()], [alone.weight.grad, given.grad])
