"""Copies on streams: which return early, and what they overlap with."""

import pytest
import torch

pytestmark = pytest.mark.both_modes


def test_only_non_blocking_copies_of_pinned_memory_return_early(asynchronous):
    """done at the return, right, pinned: the result on the CPU is pinned where nothing blocked."""
    assert asynchronous["to device True"] == [False, True, False]
    assert asynchronous["to device False"] == [True, True, False]
    assert asynchronous["to cpu True"] == [False, True, True]
    assert asynchronous["to cpu False"] == [True, True, False]


def test_copies_overlap_with_compute(asynchronous):
    """Copies on a second stream, in and out, are done while the first still computes."""
    assert asynchronous["overlap"] == [True, True]


def test_the_trace_shows_a_copy_beside_kernels_of_another_stream(asynchronous):
    runs = asynchronous["overlap in the trace"]
    assert all(kernels >= 40 and copies == 8 for kernels, copies, _ in runs), runs
    assert runs[-1][2] > 0, runs


def test_a_copy_between_devices_is_ordered_on_both_current_streams(device, second):
    x, y = torch.zeros(50, device=device), torch.zeros(50, device=second)
    first, last = torch.Stream(device), torch.Stream(device)
    there = torch.Stream(second)
    more = x + 1
    torch.accelerator.synchronize(0)
    with first:
        z = torch.randn(600, 600, device=device)
        for _ in range(8):
            z = z @ z / 30
        with there:
            y.copy_(more)
    with last, there:
        y.copy_(x)
    there.synchronize()
    assert not y.cpu().any()
