"""Records of the allocator with stacks, in the form that torch's memory viewer reads."""

import importlib
import pickle

import pytest
import torch

pytestmark = pytest.mark.both_modes

# PyTorch's viewer of snapshots, whatever device they are of.
_memory_viz = importlib.import_module("torch.CUDA._memory_viz".lower())

KIB = 2**10


@pytest.fixture(autouse=True)
def _clean(module):
    yield
    module.record_memory_history(enabled=None)
    module.set_per_process_memory_fraction(1.0)


def allocate_here(device, size=300 * KIB):
    return torch.empty(size, dtype=torch.uint8, device=device)


def functions(frames):
    return [frame["name"] for frame in frames]


def block_of(snapshot, tensor):
    blocks = [
        b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == tensor.data_ptr()
    ]
    assert len(blocks) == 1
    return blocks[0]


def test_blocks_know_who_allocated_them(device, module):
    module.record_memory_history()
    x = allocate_here(device)
    block = block_of(module.memory._snapshot(), x)
    assert block["state"] == "active_allocated"
    assert block["requested_size"] == 300 * KIB
    assert block["size"] >= 300 * KIB
    names = functions(block["frames"])
    assert names[0] == "allocate_here"
    assert "test_blocks_know_who_allocated_them" in names
    assert block["frames"][0]["filename"].endswith("memory/test_history.py")
    assert block["frames"][0]["line"] > 0


def test_traces_tell_what_happened_in_order(device, module):
    module.record_memory_history()
    x = allocate_here(device)
    address = x.data_ptr()
    del x
    trace = module.memory._snapshot()["device_traces"][0]
    mine = [e for e in trace if e.get("addr") == address and e["action"] != "segment_alloc"]
    assert [e["action"] for e in mine] == ["alloc", "free_requested", "free_completed"]
    assert all(e["size"] >= 300 * KIB for e in mine)
    assert mine[0]["time_us"] <= mine[1]["time_us"] <= mine[2]["time_us"]
    assert functions(mine[0]["frames"])[0] == "allocate_here"
    assert "test_traces_tell_what_happened_in_order" in functions(mine[1]["frames"])


def test_the_viewer_of_torch_reads_it(device, module, tmp_path):
    module.record_memory_history()
    x = [allocate_here(device, n * KIB) for n in (10, 3000, 70)]
    x.pop(1)
    snapshot = module.memory._snapshot()
    as_is = lambda lines: lines  # noqa: E731
    assert "allocate_here" in _memory_viz.memory(snapshot, format_flamegraph=as_is)
    assert "seg_" in _memory_viz.segments(snapshot, format_flamegraph=as_is)
    assert _memory_viz.compare([], snapshot["segments"], format_flamegraph=as_is)
    assert "segments:" in _memory_viz.segsum(snapshot)
    assert "free completed" in _memory_viz.trace(snapshot)
    assert "<html" in _memory_viz.trace_plot(snapshot).lower()
    assert "<html" in _memory_viz.segment_plot(snapshot).lower()
    path = tmp_path / "snapshot.pickle"
    module.dump_memory_snapshot(path)
    with path.open("rb") as file:
        assert pickle.load(file)["segments"]


def test_segments_add_up(device, module):
    x = allocate_here(device)
    snapshot = module.memory._snapshot()
    for segment in snapshot["segments"]:
        blocks = segment["blocks"]
        assert sum(b["size"] for b in blocks) == segment["total_size"]
        assert (
            sum(b["size"] for b in blocks if b["state"] == "active_allocated")
            == segment["allocated_size"]
        )
        assert [b["address"] for b in blocks] == sorted(b["address"] for b in blocks)
        assert segment["segment_type"] in ("small", "large")
    here = [s for s in snapshot["segments"] if s["device"] == 0]
    assert sum(s["total_size"] for s in here) == torch.accelerator.memory_reserved(0)
    assert sum(s["allocated_size"] for s in here) == torch.accelerator.memory_allocated(0)
    del x


def test_state_alone_keeps_no_trace(device, module):
    module.record_memory_history(enabled="state")
    x = allocate_here(device)
    snapshot = module.memory._snapshot()
    assert functions(block_of(snapshot, x)["frames"])[0] == "allocate_here"
    assert snapshot["device_traces"][0] == []


def test_without_stacks(device, module):
    module.record_memory_history(context=None)
    x = allocate_here(device)
    snapshot = module.memory._snapshot()
    assert block_of(snapshot, x)["frames"] == []
    assert snapshot["device_traces"][0][-1]["frames"] == []


def test_stacks_of_cpp(device, module):
    module.record_memory_history(stacks="all")
    x = allocate_here(device)
    names = functions(block_of(module.memory._snapshot(), x)["frames"])
    assert "allocate_here" in names
    assert any("::" in name for name in names)


def test_the_oldest_entries_go(device, module):
    module.record_memory_history(max_entries=4)
    for _ in range(10):
        allocate_here(device)
    assert len(module.memory._snapshot()["device_traces"][0]) == 4


def test_stopping_forgets(device, module):
    module.record_memory_history()
    allocate_here(device)
    module.record_memory_history(enabled=None)
    allocate_here(device)
    assert module.memory._snapshot()["device_traces"][0] == []


def test_devices_record_apart(device, second, module):
    module.record_memory_history(device=second)
    kept = allocate_here(device), allocate_here(second)
    traces = module.memory._snapshot()["device_traces"]
    assert traces[0] == []
    assert any(e["addr"] == kept[1].data_ptr() for e in traces[1])


def test_pools_of_graphs_are_named(device, module):
    graph = torch.accelerator.Graph()
    with torch.Stream(device), graph:
        y = torch.ones(1000, device=device) + 1
    mine = next(s for s in module.memory._snapshot()["segments"]
                if s["address"] <= y.data_ptr() < s["address"] + s["total_size"])  # fmt: skip
    assert mine["segment_pool_id"] != (0, 0)


def test_out_of_memory_is_recorded_and_observed(device, module):
    seen = []
    module.attach_out_of_memory_observer(lambda *told: seen.append(told))
    module.record_memory_history()
    _, total = module.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2 * total, dtype=torch.uint8, device=device)
    index, wanted, observed_total, observed_free = seen[-1]
    assert (index, wanted, observed_total) == (0, 2 * total, total)
    assert 0 < observed_free <= total
    event = module.memory._snapshot()["device_traces"][0][-1]
    assert event["action"] == "oom"
    assert event["size"] == 2 * total
    assert 0 < event["device_free"] <= total
    assert "raise OutOfMemoryError" in _memory_viz.trace(module.memory._snapshot())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_observer_that_raises_does_not_hide_the_error(device, module):
    def observer(*told):
        raise ValueError("planted")

    module.attach_out_of_memory_observer(observer)
    _, total = module.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2 * total, dtype=torch.uint8, device=device)
    assert torch.ones(3, device=device).sum().item() == 3


@pytest.mark.parametrize("wrong", [{"enabled": "some"}, {"context": "none"}, {"stacks": "cpp"}])
def test_wrong_choices_are_named(module, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        module.record_memory_history(**wrong)
