"""Blocks of device memory go to the next who asks, and to nobody before their work is done."""

import random
import threading

import pytest
import torch

pytestmark = pytest.mark.both_modes

MIB = 2**20


def test_a_block_waits_for_the_streams_that_a_view_of_it_recorded(pending):
    assert pending["recorded view"] == [True, True]


def test_numbers_survive_any_order_of_allocations(device, module):
    random.seed(123)
    held = []
    for count in range(400):
        action = random.random()
        if held and (action < 0.45 or sum(x.numel() for _, x in held) > 8 * MIB):
            value, x = held.pop(random.randrange(len(held)))
            assert (x == value).all().item()
        elif action < 0.95:
            size = random.randrange(1, MIB)
            held.append((count, torch.full((size,), count, dtype=torch.int32, device=device)))
        else:
            module.empty_cache()


def test_threads_allocate_and_empty_the_cache_together(device, module):
    errors = []

    def work(seed):
        draw = random.Random(seed)
        try:
            with torch.Stream(device):
                for _ in range(60):
                    x = torch.full((draw.randrange(1, 50_000),), float(seed), device=device)
                    if draw.random() < 0.1:
                        module.empty_cache()
                    assert (x == seed).all().item()
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_an_operator_that_raises_keeps_no_memory(device, allocated):
    before = allocated()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            torch.randn(300, 1000, device=device) + torch.randn(200, 1000, device=device)
    assert allocated() == before


def test_a_broadcast_product_copies_no_operand(device, module):
    def peak(call):
        torch.accelerator.synchronize()
        torch.accelerator.reset_peak_memory_stats()
        before = module.memory_allocated()
        call()
        return module.max_memory_allocated() - before

    a, b = torch.rand(1, 32, 32, device=device), torch.rand(24, 32, 1, device=device)
    plain = peak(lambda: torch.matmul(a, b))
    expanded = a.expand(24, 32, 32)
    assert peak(lambda: torch.matmul(expanded, b)) == plain
    assert peak(lambda: torch.bmm(expanded, b)) == plain
