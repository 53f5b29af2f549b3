"""Capturing a graph: what it takes, what it refuses, and what a stream says meanwhile."""

import pytest
import torch

from capturing import captured

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def test_nothing_runs_while_it_is_captured():
    x = torch.zeros(10, device=DEVICE)
    before = torch.graft.statistics()["launches"]
    graph, _ = captured(DEVICE, lambda: x.add_(1))
    assert torch.graft.statistics()["launches"] == before
    assert x.sum().item() == 0
    graph.replay()
    graph.replay()
    assert x.sum().item() == 20


@pytest.mark.parametrize(
    "illegal",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: torch.accelerator.synchronize(),
        lambda x: x.copy_(torch.ones(10)),
        lambda x: torch.accelerator.current_stream().query(),
        lambda x: torch.nonzero(x),
    ],
    ids=["item", "to the host", "synchronize", "pageable copy", "query", "nonzero"],
)
def test_what_waits_is_refused_and_the_stream_stays_usable(illegal):
    x = torch.ones(10, device=DEVICE)
    graph, stream = torch.accelerator.Graph(), torch.Stream(device=DEVICE)
    with pytest.raises(RuntimeError, match="captures a graph"), stream, graph:
        illegal(x.add_(1))
    graph.reset()
    with stream:
        assert (x * 2).sum().item() == 20
    graph, y = captured(DEVICE, lambda: x + 1)
    graph.replay()
    assert y.sum().item() == 20


def test_pinned_copies_are_captured():
    host = torch.zeros(10, pin_memory=True)
    x = torch.empty(10, device=DEVICE)
    back = torch.zeros(10, pin_memory=True)

    def work():
        x.copy_(host, non_blocking=True)
        x.mul_(2)
        back.copy_(x, non_blocking=True)

    graph, _ = captured(DEVICE, work)
    host.fill_(21)
    graph.replay()
    torch.accelerator.synchronize()
    assert back.tolist() == [42.0] * 10


def test_misuse_is_told():
    graph = torch.accelerator.Graph()
    with pytest.raises(RuntimeError, match="this graph is empty: capture something first"):
        graph.replay()
    with pytest.raises(RuntimeError, match="no capture"):
        graph.capture_end()
    with torch.Stream(device=DEVICE):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="the capture of this graph still runs"):
            graph.replay()
        second = torch.accelerator.Graph()
        with pytest.raises(RuntimeError, match="another capture"):
            second.capture_begin()
        graph.capture_end()
    with pytest.raises(RuntimeError, match="already holds a capture"):
        graph.capture_begin()
    graph.reset()
    bad = torch.accelerator.Graph(pool=(3, 4))
    with pytest.raises(RuntimeError, match="graph_pool_handle"):
        bad.capture_begin()


def test_the_dump_names_the_operators(tmp_path):
    x = torch.ones(10, device=DEVICE)
    graph, _ = captured(DEVICE, lambda: (x + 1).exp())
    graph.debug_dump(str(tmp_path / "graph.txt"))
    text = (tmp_path / "graph.txt").read_text()
    assert "aten::add" in text
    assert "aten::exp" in text
    with pytest.raises(RuntimeError, match="cannot write the graph's commands to"):
        graph.debug_dump(str(tmp_path / "no" / "folder"))


def test_capturing_is_told_of_the_current_stream():
    assert not torch.graft.is_current_stream_capturing()
    seen = []
    captured(DEVICE, lambda: seen.append(torch.graft.is_current_stream_capturing()))
    assert seen == [True]


def test_a_stream_tells_whether_it_captures():
    side, other = torch.Stream(device=DEVICE), torch.Stream(device=DEVICE)
    with side, torch.accelerator.Graph():
        seen = [side.is_capturing(), other.is_capturing()]
        seen.append(torch.accelerator.current_stream().is_capturing())
        other.wait_stream(side)
        seen.append(other.is_capturing())
    assert seen == [True, False, True, True]
    assert not side.is_capturing()
    assert not other.is_capturing()


def test_the_context_manager_of_cuda():
    x = torch.ones(10, device=DEVICE)
    graph = torch.graft.Graph()
    with torch.graft.graph(graph, pool=torch.graft.graph_pool_handle()):
        y = x * 5
    graph.replay()
    assert y.sum().item() == 50


def test_a_graph_may_be_captured_again_after_a_reset(device):
    x = torch.ones(1000, device=device)
    graph, first = captured(device, lambda: x + 1)
    graph.replay()
    assert first.sum().item() == 2000
    graph.reset()
    graph, second = captured(device, lambda: x + 5, graph)
    graph.replay()
    assert second.sum().item() == 6000
