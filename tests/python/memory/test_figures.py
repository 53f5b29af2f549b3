"""Figures of device and pinned memory: what is counted, the fraction of it, what a step takes."""

import gc
import random

import pytest
import torch

pytestmark = pytest.mark.both_modes

PAGE = 4096
MIB = 2**20


@pytest.fixture
def pinned(module):
    """What host_memory_stats has gained since the last call."""
    gc.collect()
    module.synchronize()
    torch.accelerator.empty_host_cache()
    module.reset_peak_host_memory_stats()
    module.reset_accumulated_host_memory_stats()
    start = module.host_memory_stats()

    def gained(name):
        return module.host_memory_stats()[name] - start[name]

    return gained


def test_pinned_memory_is_counted(pinned):
    first = torch.ones(10 * 1024, pin_memory=True)  # 40 KiB lie in 64
    second = torch.ones(20 * 1024, pin_memory=True)  # 80 KiB lie in 128
    for figure in ("active_requests", "allocations"):
        assert [
            pinned(f"{figure}.{part}") for part in ("current", "peak", "allocated", "freed")
        ] == [2, 2, 2, 0]
    for figure in ("active_bytes", "allocated_bytes"):
        for part in ("current", "peak", "allocated"):
            assert pinned(f"{figure}.{part}") == 192 * 1024
    assert (pinned("num_host_alloc"), pinned("num_host_free")) == (2, 0)
    del second
    assert (pinned("active_requests.current"), pinned("active_requests.freed")) == (1, 1)
    assert (pinned("active_bytes.current"), pinned("allocated_bytes.current")) == (
        64 * 1024,
        192 * 1024,
    )
    third = torch.ones(17 * 1024, pin_memory=True)  # takes the second one's place
    assert (pinned("active_requests.allocated"), pinned("num_host_alloc")) == (3, 2)
    del first, third
    torch.accelerator.empty_host_cache()
    assert [
        pinned(f"{figure}.current") for figure in ("active_bytes", "allocated_bytes", "allocations")
    ] == [0, 0, 0]
    assert pinned("active_bytes.peak") == 192 * 1024
    assert pinned("num_host_free") == 2


def test_figures_of_pinned_memory_start_anew(module, pinned):
    del pinned
    kept = torch.ones(4 * PAGE, dtype=torch.uint8).pin_memory()
    torch.ones(64 * PAGE, dtype=torch.uint8).pin_memory()
    module.reset_peak_host_memory_stats()
    module.reset_accumulated_host_memory_stats()
    stats, nested = module.host_memory_stats(), module.host_memory_stats_as_nested_dict()
    assert stats["active_bytes.peak"] == stats["active_bytes.current"] >= kept.nbytes
    assert (
        stats["active_bytes.allocated"]
        == stats["active_bytes.freed"]
        == stats["num_host_alloc"]
        == 0
    )
    assert nested["active_bytes"]["current"] == stats["active_bytes.current"]
    assert nested["num_host_free"] == stats["num_host_free"]
    assert module.memory.host_memory_stats() == stats


def test_pinned_memory_of_two_devices_is_counted_together(device, second, pinned):
    with torch.accelerator.device_index(torch.device(second).index):
        there = torch.ones(PAGE, dtype=torch.uint8).pin_memory()
    here = torch.ones(PAGE, dtype=torch.uint8).pin_memory()
    assert pinned("active_bytes.current") == there.nbytes + here.nbytes


def test_memory_without_a_tensor(device, second, module):
    for where in (device, second):
        before = module.memory_allocated(where)
        addresses = [module.caching_allocator_alloc(size, where) for size in (1, 100_000)]
        assert len(set(addresses)) == 2
        assert module.memory_allocated(where) - before >= 100_001
        for address in addresses:
            module.caching_allocator_delete(address)
        assert module.memory_allocated(where) == before
    with pytest.raises(RuntimeError, match="or it was already deleted"):
        module.caching_allocator_delete(addresses[0])
    with pytest.raises(RuntimeError, match="at least one byte"):
        module.caching_allocator_alloc(0)
    held = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="no allocation begins at"):
        module.caching_allocator_delete(held.data_ptr())


def test_the_fraction_of_the_memory_is_read(module, second):
    assert module.get_per_process_memory_fraction() == 1.0
    try:
        for fraction in (0.25, 0.5, 0.875):
            module.set_per_process_memory_fraction(fraction, second)
            assert module.get_per_process_memory_fraction(second) == pytest.approx(
                fraction, abs=1e-6
            )
            assert module.get_per_process_memory_fraction(0) == 1.0
    finally:
        module.set_per_process_memory_fraction(1.0, second)
    assert module.get_per_process_memory_fraction(second) == 1.0


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_a_foreach_step_takes_at_most_one_more_set_of_parameters(device, module, kind):
    sizes = [(256, 256)] * 8
    peaks = {}
    for foreach in (False, True):
        parameters = [torch.zeros(*size, device=device, requires_grad=True) for size in sizes]
        for p in parameters:
            p.grad = torch.ones_like(p)
        optimizer = kind(parameters, lr=0.01, foreach=foreach)
        optimizer.step()  # makes the state
        module.synchronize()
        module.reset_peak_memory_stats()
        before = module.memory_allocated()
        optimizer.step()
        module.synchronize()
        peaks[foreach] = module.max_memory_allocated() - before
    whole = sum(p.nbytes for p in parameters)
    assert peaks[True] <= peaks[False] + whole


def figures(module, index):
    stats = module.memory_stats(index)
    return [stats[f"{name}.all.current"] for name in ("allocated_bytes", "allocation")]


def smallest_block(device, module):
    """512 bytes, or the device's alignment."""
    before = module.memory_allocated()
    x = torch.empty(1, dtype=torch.uint8, device=device)
    return (module.memory_allocated() - before) * x.numel()


def test_figures_of_two_devices_move_apart_and_come_back(device, second, module):
    random.seed(5)
    block = smallest_block(device, module)
    starts = [figures(module, index) for index in (0, 1)]
    held = {0: [], 1: []}
    for _ in range(200):
        index = random.randrange(2)
        before = [module.memory_allocated(i) for i in (0, 1)]
        if held[index] and random.random() < 0.45:
            size = -held[index].pop(random.randrange(len(held[index]))).numel()
        else:
            size = random.choice((1, 300, 512, 70_000, MIB, 3 * MIB + 5))
            where = (device, second)[index]
            held[index].append(torch.empty(size, dtype=torch.uint8, device=where))
        after = [module.memory_allocated(i) for i in (0, 1)]
        assert after[1 - index] == before[1 - index]
        rounded = -(-abs(size) // block) * block
        assert after[index] - before[index] == (rounded if size > 0 else -rounded)
        assert module.max_memory_allocated(index) >= after[index]
        assert module.memory_reserved(index) >= after[index]
    assert [figures(module, index)[1] - starts[index][1] for index in (0, 1)] == [
        len(held[index]) for index in (0, 1)
    ]
    held.clear()
    assert [figures(module, index) for index in (0, 1)] == starts


def test_an_empty_tensor_takes_nothing(device, module):
    before = figures(module, 0)
    x = torch.empty(0, 3, device=device)
    assert figures(module, 0) == before
    assert x.data_ptr() == 0


def test_what_was_asked_for_is_counted_beside_what_was_given(device, module):
    before = module.memory_stats()
    x = torch.empty(300, dtype=torch.uint8, device=device)
    after = module.memory_stats()
    asked, given = (
        after[f"{name}.all.current"] - before[f"{name}.all.current"]
        for name in ("requested_bytes", "allocated_bytes")
    )
    assert (asked, given) == (x.numel(), smallest_block(device, module))


@pytest.mark.parametrize("form", [lambda d: 1, lambda d: f"{d}:1", lambda d: torch.device(d, 1)])
def test_free_memory_of_a_device_by_any_name(device, module, form):
    where = form(device)
    module.empty_cache()
    free, total = module.mem_get_info(where)
    x = torch.empty(64 * MIB, dtype=torch.uint8, device=f"{device}:1")
    less, same = module.mem_get_info(where)
    assert total == same
    assert free - less >= x.numel()
