"""Memory of the slot: figures, snapshots, limits and pools."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

MIB = 1 << 20


def test_figures(ve: Any) -> None:
    gc.collect()
    ve.synchronize()
    ve.reset_peak_memory_stats()
    before = ve.memory_allocated()
    x = torch.empty(4 * MIB, dtype=torch.uint8, device="ve")
    assert ve.memory_allocated() - before == 4 * MIB
    assert ve.max_memory_allocated() >= 4 * MIB
    assert ve.memory_reserved() >= 4 * MIB
    stats = ve.memory_stats()
    assert stats["allocated_bytes.all.current"] == ve.memory_allocated()
    assert ve.memory_stats_as_nested_dict()["num_ooms"] == stats["num_ooms"]
    free, total = ve.mem_get_info()
    assert ve.device_memory_used() == total - free
    assert "allocated" in ve.memory_summary()
    assert ve.memory_allocated(1) == ve.memory_allocated("ve:1")
    del x
    ve.synchronize()
    assert ve.memory_allocated() == before
    ve.empty_cache()


def test_graft_and_the_slot_count_the_same_memory(ve: Any) -> None:
    before = ve.memory_allocated()
    held = [
        torch.empty(MIB, dtype=torch.uint8, device=f"graft:{i}")
        for i in range(torch.graft.device_count())
    ]
    assert ve.memory_allocated() - before == (MIB if held else 0)


def test_a_fraction_limits(ve: Any) -> None:
    ve.set_per_process_memory_fraction(0.01, 1)
    try:
        assert ve.get_per_process_memory_fraction("ve:1") == pytest.approx(0.01)
        assert ve.get_per_process_memory_fraction(0) == 1
        with pytest.raises(torch.OutOfMemoryError, match="ve:1"):
            torch.empty(ve.mem_get_info(1)[1] // 2, dtype=torch.uint8, device="ve:1")
    finally:
        ve.set_per_process_memory_fraction(1.0, 1)


def test_observers_hear_the_slots_numbers(ve: Any) -> None:
    heard: list[tuple[int, ...]] = []
    ve.attach_out_of_memory_observer(lambda *figures: heard.append(figures))
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 45, dtype=torch.uint8, device="ve:1")
    assert [one[:2] for one in heard] == [(1, 1 << 45)]


def test_snapshots_list_the_slots_devices(ve: Any, tmp_path: Path) -> None:
    ve.memory._record_memory_history()
    try:
        x = torch.ones(1000, device="ve:1")
        whole = ve.memory._snapshot()
        one = ve.memory._snapshot("ve:1")
        ve.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    finally:
        ve.memory._record_memory_history(enabled=None)
    holding = [
        s
        for s in ve.memory_snapshot()
        if s["address"] <= x.data_ptr() < s["address"] + s["total_size"]
    ]
    assert [s["device"] for s in holding] == [1]
    assert {s["device"] for s in whole["segments"]} <= {0, 1}
    assert {s["device"] for s in one["segments"]} == {1}
    assert len(whole["device_traces"]) == len(one["device_traces"]) == 2
    assert any(event["addr"] == x.data_ptr() for event in whole["device_traces"][1])
    assert one["device_traces"][0] == []
    dumped = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert {s["device"] for s in dumped["segments"]} <= {0, 1}


def test_pools(ve: Any) -> None:
    pool = ve.MemPool()
    with ve.use_mem_pool(pool, 1):
        x = torch.ones(1000, device="ve:1")
    y = torch.ones(1000, device="ve:1")
    (segment,) = pool.snapshot()
    assert segment["device"] == 1
    assert segment["address"] <= x.data_ptr() < segment["address"] + segment["total_size"]
    assert not segment["address"] <= y.data_ptr() < segment["address"] + segment["total_size"]
    assert [s["address"] for s in ve.memory_snapshot(pool.id)] == [segment["address"]]


def test_memory_for_other_libraries(ve: Any) -> None:
    before = ve.memory_allocated(1)
    address = ve.caching_allocator_alloc(4096, 1)
    assert ve.memory_allocated(1) > before
    ve.caching_allocator_delete(address)
    assert ve.memory_allocated(1) == before


def test_pinned_memory_where_no_other_device_is_counted(python: Any) -> None:
    code = """
x = torch.arange(4.0).pin_memory()
print(json.dumps([x.is_pinned(), x.to("ve", non_blocking=True).tolist(), torch.ve.is_available()]))
"""
    assert python(code, GRAFT_DEVICES="nothing").value() == [True, [0, 1, 2, 3], True]


def test_memory_of_another_stream_waits(ve: Any) -> None:
    side = ve.Stream()
    a = torch.rand(600, 600, device="ve")
    ve.synchronize()
    x = torch.ones(600, 600, device="ve")
    address = x.data_ptr()
    with ve.stream(side):
        for _ in range(20):
            a = (a @ a).softmax(0)
        y = x + a.sum() * 0
    x.record_stream(side)
    del x
    z = torch.zeros(600, 600, device="ve")
    assert z.data_ptr() != address or side.query()
    side.synchronize()
    assert y.min() == 1


def test_the_profiler_tells_operators_and_memory(ve: Any) -> None:
    from torch.profiler import profile

    with profile(profile_memory=True) as profiler:
        a = torch.rand(100, 100, device="ve")
        a @ a
        ve.synchronize()
    rows = {row.key: row for row in profiler.key_averages()}
    assert rows["aten::mm"].count == 1
    assert "random_uniform_float32" in rows
    plain = graft_rows() if torch.graft.device_count() else rows
    for name in ("aten::mm", "aten::rand", "aten::empty"):
        assert rows[name].count == plain[name].count
        assert rows[name].device_memory_usage == plain[name].device_memory_usage
        assert rows[name].cpu_memory_usage == plain[name].cpu_memory_usage


def graft_rows() -> dict[str, Any]:
    from torch.profiler import profile

    with profile(profile_memory=True) as profiler:
        a = torch.rand(100, 100, device="graft")
        a @ a
    return {row.key: row for row in profiler.key_averages()}
