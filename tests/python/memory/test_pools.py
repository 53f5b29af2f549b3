"""Memory pools of the user: torch.graft.MemPool and use_mem_pool."""

import gc
import threading

import pytest
import torch

pytestmark = pytest.mark.both_modes

MIB = 2**20
SHARED = (0, 0)


def owner(module, x):
    """The pool of the segment that a tensor lies in."""
    return next(s["segment_pool_id"] for s in module.memory_snapshot()
                if s["address"] <= x.data_ptr() < s["address"] + s["total_size"])  # fmt: skip


def test_memory_comes_from_the_innermost_pool(device, module):
    pool, inner = module.MemPool(), module.MemPool()
    assert pool.id != inner.id
    found = [torch.ones(10, device=device)]
    with module.use_mem_pool(pool):
        found.append(torch.ones(10, device=device))
        with module.use_mem_pool(inner):
            found.append(torch.ones(10, device=device))
        found.append(torch.ones(10, device=device))
    with pytest.raises(KeyError), module.use_mem_pool(pool):
        raise KeyError
    found.append(torch.ones(10, device=device))
    assert [owner(module, x) for x in found] == [SHARED, pool.id, inner.id, pool.id, SHARED]
    assert {segment["segment_pool_id"] for segment in pool.snapshot()} == {pool.id}


def test_freed_memory_stays_with_the_pool_until_it_is_gone(device, module):
    def address():
        return torch.ones(5 * MIB, device=device).data_ptr()

    pool = module.MemPool()
    with module.use_mem_pool(pool):
        inside = address()
    others = [torch.ones(5 * MIB, device=device) for _ in range(3)]
    assert inside not in [x.data_ptr() for x in others]
    module.empty_cache()
    with module.use_mem_pool(pool):
        assert address() == inside
    held = module.memory_reserved()
    del pool
    gc.collect()
    module.empty_cache()
    assert module.memory_reserved() <= held - 20 * MIB


def test_a_tensor_outlives_its_pool(device, module):
    pool = module.MemPool()
    with module.use_mem_pool(pool):
        x = torch.full((1000,), 3.0, device=device)
    del pool
    gc.collect()
    module.empty_cache()
    others = [torch.zeros(1000, device=device) for _ in range(4)]
    assert x.sum().item() == 3000
    assert owner(module, x) == SHARED
    del others


def test_other_threads_and_devices_are_left_alone(device, second, module):
    pool, found = module.MemPool(), []

    def work():
        found.append(owner(module, torch.ones(10, device=device)))

    with module.use_mem_pool(pool):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        there = torch.ones(10, device=second)
    assert found == [SHARED]
    assert owner(module, there) == SHARED
    with module.use_mem_pool(pool, second):
        assert owner(module, torch.ones(10, device=second)) == pool.id


def test_streams_do_not_share_what_is_free_in_a_pool(device, module):
    with module.use_mem_pool(module.MemPool()):
        address = torch.ones(1000, device=device).data_ptr()
        with torch.Stream(device):
            assert torch.ones(1000, device=device).data_ptr() != address
        assert torch.ones(1000, device=device).data_ptr() == address


def test_a_graph_may_be_captured_into_a_pool(device, module):
    pool, x = module.MemPool(), torch.ones(10, device=device)
    graph = torch.accelerator.Graph(pool=pool.id)
    with module.use_mem_pool(pool):
        mine = torch.ones(10, device=device)
        with torch.Stream(device), graph:
            y = x * 2
    x.fill_(4)
    graph.replay()
    assert y.tolist() == [8.0] * 10
    assert owner(module, y) == owner(module, mine) == pool.id
    assert mine.tolist() == [1.0] * 10
    graph.reset()
    assert owner(module, y) == pool.id
