"""Memory of captured graphs: whose it is, who shares it, and when it comes back."""

import gc
import threading

import pytest
import torch

from capturing import captured

pytestmark = pytest.mark.both_modes

DEVICE = "graft"


def test_memory_of_a_graph_goes_to_nobody_else_until_it_is_reset():
    x = torch.ones(1 << 20, device=DEVICE)

    def work():
        middle = x * 2
        result = middle + 1
        del middle
        return result

    graph, y = captured(DEVICE, work)
    others = [torch.full((1 << 20,), 7.0, device=DEVICE) for _ in range(8)]
    graph.replay()
    assert all(bool((other == 7).all()) for other in others)
    assert bool((y == 3).all())
    del others, y
    torch.graft.empty_cache()
    held = torch.graft.memory_reserved()
    graph.reset()
    torch.graft.empty_cache()
    assert torch.graft.memory_reserved() < held


def test_graphs_share_a_pool():
    x = torch.ones(1 << 20, device=DEVICE)
    first, a = captured(DEVICE, lambda: (x + 1).sum())
    held = torch.graft.memory_reserved()
    second, b = captured(DEVICE, lambda: (x + 2).sum(), pool=first.pool())
    assert second.pool() == first.pool()
    assert torch.graft.memory_reserved() <= held
    first.replay()
    second.replay()
    assert (a.item(), b.item()) == (2 << 20, 3 << 20)


@pytest.mark.parametrize("shared", [False, True], ids=["own pools", "one pool"])
def test_graphs_that_read_each_other_s_results(device, module, shared):
    x = torch.ones(1000, device=device)
    pool = module.graph_pool_handle() if shared else None
    graphs = [torch.accelerator.Graph(pool=pool) for _ in range(3)]
    stream = torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream:
        with graphs[0]:
            b = x.clone()
            c, d = b + 1, b + 2
        with graphs[1]:
            e = c + 3
            del c
        with graphs[2]:
            f = d + 4
    torch.accelerator.current_stream().wait_stream(stream)
    for _ in range(2):
        for graph in graphs:
            graph.replay()
        assert (e.sum().item(), f.sum().item()) == (5000, 7000)


def test_a_result_outlives_its_graph(device, module):
    x = torch.ones(1000, device=device)
    graph, y = captured(device, lambda: (x + 1) * 2)
    graph.replay()
    del graph
    gc.collect()
    module.empty_cache()
    others = [torch.full((1000,), 7.0, device=device) for _ in range(10)]
    assert y.sum().item() == 4000
    assert sum(other.sum().item() for other in others) == 70_000


def test_another_thread_allocates_while_one_captures(device, module):
    x, found = torch.ones(1000, device=device), []

    def allocate():
        with torch.Stream(device):
            found.append(torch.empty(1000, device=device))

    def work():
        y = x + 1
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
        return y * 2

    graph, y = captured(device, work)
    found[0].fill_(3)
    graph.replay()
    assert (y.sum().item(), found[0].sum().item()) == (4000, 3000)


def test_pinned_memory_of_a_captured_copy_stays_with_the_graph(device):
    x = torch.zeros(300, device=device)

    def work():
        source = torch.full((300,), 3.0).pin_memory()
        x.copy_(source, non_blocking=True)
        return source.data_ptr()

    def pinned():
        return [torch.full((300,), 9.0).pin_memory() for _ in range(8)]

    graph, address = captured(device, work)
    others = pinned()
    assert address not in [one.data_ptr() for one in others]
    graph.replay()
    assert x.tolist() == [3.0] * 300
    graph.reset()
    assert address in [one.data_ptr() for one in pinned()]


def test_many_captures_take_no_more_memory_than_one(device, module):
    a, b = (torch.rand(64, 64, device=device) for _ in range(2))

    def capture_and_drop():
        graph, result = captured(device, lambda: a @ b)
        graph.replay()
        del graph, result
        gc.collect()
        torch.accelerator.synchronize()
        module.empty_cache()
        return module.memory_reserved()

    first = capture_and_drop()
    assert [capture_and_drop() for _ in range(10)][-1] <= first
