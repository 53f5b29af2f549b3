"""Captured graphs on several streams and in several threads."""

import threading

import pytest
import torch

from capturing import captured

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def test_other_streams_join_through_events():
    x = torch.ones(100, device=DEVICE)
    other = torch.Stream(device=DEVICE)

    def work():
        y = x + 1
        other.wait_stream(torch.accelerator.current_stream())
        with other:
            z = y * 3
        torch.accelerator.current_stream().wait_stream(other)
        return y + z

    graph, result = captured(DEVICE, work)
    x.fill_(4)
    graph.replay()
    assert result.sum().item() == 100 * 20
    with other:
        assert (x + 1).sum().item() == 500


def test_graphs_replay_on_streams_and_in_threads_at_once(device):
    x = torch.ones(10_000, device=device)
    pairs = [captured(device, lambda i=i: (x + i) * 2) for i in range(4)]
    errors = []

    def work(graph):
        try:
            with torch.Stream(device) as stream:
                for _ in range(20):
                    graph.replay()
                stream.synchronize()
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    torch.accelerator.synchronize()
    threads = [threading.Thread(target=work, args=(graph,)) for graph, _ in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert [y.mean().item() for _, y in pairs] == [2.0 * (1 + i) for i in range(4)]


def test_recorded_streams_inside_a_capture(device):
    x, side = torch.zeros(3, device=device), torch.Stream(device)

    def work():
        y = x + 1
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            z = y * 3
            y.record_stream(side)
        del y
        torch.accelerator.current_stream().wait_stream(side)
        return z + torch.ones_like(x)

    graph, result = captured(device, work)
    x.fill_(2)
    graph.replay()
    assert result.tolist() == [10.0] * 3


@pytest.mark.parametrize("again", [False, True], ids=["", "which captures again"])
def test_a_reset_waits_for_replays_on_another_stream(device, again):
    x = torch.randn(300, 300, device=device)
    owner, side = torch.Stream(device), torch.Stream(device)
    graph, other = torch.accelerator.Graph(), torch.accelerator.Graph()
    torch.accelerator.synchronize()
    with owner, graph:
        y = x
        for _ in range(20):
            y = y @ x / 20
    del y
    with side:
        for _ in range(3):
            graph.replay()
        if again:
            other.capture_begin()
        graph.reset()
        if again:
            other.capture_end()
    with owner:
        filled = [torch.full((300, 300), 7.0, device=device) for _ in range(10)]
    side.synchronize()
    owner.synchronize()
    assert all(bool((one == 7).all()) for one in filled)
