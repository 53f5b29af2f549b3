"""Memory that runs out: in a backward, in a capture, at a fraction, at impossible sizes."""

import pytest
import torch

from sandbox import interpret, program

pytestmark = pytest.mark.both_modes

MIB = 2**20


def test_memory_runs_out_inside_a_backward():
    """It is given back, nothing is half done, and the next step works."""
    ran = interpret(
        program("tests/python/support/failing_backward.py"), GRAFT_HOST_MEMORY=str(128 * MIB)
    )
    assert ran.value() == [True, 0, True, True]


def test_memory_runs_out_inside_a_capture(device):
    x = torch.ones(10, device=device)
    graph, stream = torch.accelerator.Graph(), torch.Stream(device)
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"), stream, graph:
        torch.zeros(2**42, device=device)
    graph.reset()
    assert (x + 1).sum().item() == 20
    with stream, graph:
        y = x * 3
    graph.replay()
    assert y.sum().item() == 30


def test_a_fraction_of_the_memory_is_a_limit(device, module):
    kept = torch.zeros(1024, device=device)
    module.empty_cache()
    total = module.get_device_properties(0).total_memory
    try:
        module.set_per_process_memory_fraction((module.memory_reserved() + 64 * MIB) / total)
        inside = torch.empty(40 * MIB, dtype=torch.uint8, device=device)
        del inside
        with pytest.raises(torch.OutOfMemoryError, match="set_per_process_memory_fraction"):
            torch.empty(80 * MIB, dtype=torch.uint8, device=device)
        assert torch.empty(80 * MIB, dtype=torch.uint8, device=f"{device}:1").numel() == 80 * MIB
    finally:
        module.set_per_process_memory_fraction(1.0)
    assert torch.empty(80 * MIB, dtype=torch.uint8, device=device).numel() == 80 * MIB
    assert not kept.any().item()


def test_impossible_sizes_are_out_of_memory(device, module):
    assert module.OutOfMemoryError is torch.OutOfMemoryError
    kept = torch.zeros(1024, device=device)
    for power in (50, 60):
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            torch.empty(2**power, dtype=torch.int8, device=device)
    kept.fill_(1)
    assert kept.all().item()
