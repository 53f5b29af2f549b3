"""Memory: statistics, limits, the message when there is none left, streams and reuse, pinned."""

import gc
import re

import pytest
import torch

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

MIB = 2**20


@pytest.fixture(autouse=True)
def _clean(device):
    if device == "cpu":
        pytest.fail("needs a device with an allocator")
    gc.collect()
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()


def test_statistics(device, module):
    before = torch.accelerator.memory_allocated()
    x = torch.empty(8 * MIB, dtype=torch.uint8, device=device)
    assert torch.accelerator.memory_allocated() - before == 8 * MIB
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated()
    del x
    assert torch.accelerator.memory_allocated() == before
    assert torch.accelerator.max_memory_allocated() - before == 8 * MIB
    assert torch.accelerator.max_memory_reserved() >= 8 * MIB
    reserved = torch.accelerator.memory_reserved()
    torch.accelerator.empty_cache()
    assert reserved - torch.accelerator.memory_reserved() >= 8 * MIB
    stats = torch.accelerator.memory_stats()
    for key in ("allocated_bytes.all.current", "reserved_bytes.all.peak", "num_ooms",
                "segment.all.allocated", "active_bytes.all.current"):  # fmt: skip
        assert key in stats
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_stats()["allocated_bytes.all.allocated"] == 0
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == torch.accelerator.memory_allocated()
    assert module.memory_allocated() == torch.accelerator.memory_allocated()
    assert "reserved" in module.memory_summary().lower()


def test_devices_count_apart(device, second):
    here, there = (torch.accelerator.memory_allocated(i) for i in (0, 1))
    x = torch.empty(MIB, dtype=torch.uint8, device=second)
    assert torch.accelerator.memory_allocated(0) == here
    assert torch.accelerator.memory_allocated(1) == there + x.numel()


def test_information(device, module):
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    assert module.mem_get_info() == (free, total)
    assert module.get_device_properties(0).total_memory == total


def test_blocks_are_reused(device):
    x = torch.empty(3 * MIB, device=device)
    address = x.data_ptr()
    del x
    assert torch.empty(3 * MIB, device=device).data_ptr() == address
    segments = torch.accelerator.memory_stats()["segment.all.allocated"]
    for i in range(200):
        torch.empty(1000 + i, device=device)
    assert torch.accelerator.memory_stats()["segment.all.allocated"] - segments <= 2


def test_block_of_another_stream_waits(device):
    side = torch.Stream(device)
    big = torch.randn(700, 700, device=device)
    torch.accelerator.synchronize()
    with side:
        for _ in range(4):
            big = big @ big / 30
    x = torch.ones(700, 700, device=device)
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        y = big * 0 + x
    x.record_stream(side)
    del x
    torch.full((700, 700), 9.0, device=device)
    torch.accelerator.synchronize()
    assert (y.cpu() == 1).all()


OUT_OF_MEMORY = """
    torch.ones(2**20, device=D)
    kept = torch.ones(4 * 2**20, device=D)
    try:
        torch.empty(2**30, device=D)
        print("none")
    except torch.OutOfMemoryError as error:
        print(str(error).replace(chr(10), " "))
    print(torch.accelerator.memory_stats()["num_ooms"], kept.sum().item())
"""


def test_out_of_memory(python):
    ran = python(OUT_OF_MEMORY, GRAFT_HOST_MEMORY=str(64 * MIB)).good()
    message, rest = ran.out.strip().splitlines()[-2:]
    for part in (r"4\.0+ GiB|4294967296", r"64\.0+ MiB|67108864", "allocated", "reserved"):
        assert re.search(part, message), message
    assert rest == f"1 {4 * 2**20}.0"


def test_cache_is_given_back_before_failing(python):
    python(
        """
        for size in (10, 20, 30, 40, 50):
            x = torch.ones(size * 2**20, dtype=torch.uint8, device=D); del x
        assert torch.accelerator.memory_stats()["num_ooms"] == 0
        print(torch.accelerator.memory_stats()["num_alloc_retries"] > 0)
        """,
        GRAFT_HOST_MEMORY=str(64 * MIB),
    ).good()


def test_failing_allocations_leave_the_device_usable(python):
    python(
        """
        failed = 0
        for i in range(300):
            try:
                assert (torch.ones(50000 + 7000 * i, device=D) + 1)[5].item() == 2
            except torch.OutOfMemoryError:
                failed += 1
        assert 0 < failed < 290, failed
        """,
        GRAFT_HOST_FAULTS="alloc:0.2", GRAFT_NO_CACHING="1",
    ).good()  # fmt: skip


def test_without_caching(python):
    python(
        """
        x = torch.ones(1000, device=D)
        assert torch.accelerator.memory_reserved() == torch.accelerator.memory_allocated() > 0
        del x
        assert torch.accelerator.memory_reserved() == 0
        """,
        GRAFT_NO_CACHING="1",
    ).good()


def test_read_from_the_host_dies_with_one_line(python):
    ran = python("""
        import ctypes
        x = torch.ones(100, device=D)
        ctypes.string_at(x.data_ptr(), 4)
        """)
    assert ran.code == -11
    assert len([line for line in ran.err.splitlines() if "device memory" in line]) == 1


def test_pinned_memory_is_reused(device):
    def pinned():
        return torch.empty(MIB, pin_memory=True)

    address = pinned().data_ptr()
    assert pinned().data_ptr() == address
    with pytest.raises(RuntimeError, match="pin"):
        torch.ones(3, device=device).pin_memory()
    torch.accelerator.empty_host_cache()
