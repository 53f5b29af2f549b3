# tests/python/memory/test_expandable.py: segments that grow, as PyTorch's allocator setting asks for.
"""expandable_segments:True of PYTORCH_ALLOC_CONF."""

from collections.abc import Callable

import pytest

from sandbox import TOLD, Ran

pytestmark = [pytest.mark.host_only, pytest.mark.both_modes]

# Each size is larger than what was freed before, and something small stays between.
GROWTH = (
    TOLD
    + """
g = torch.get_device_module(D)
MiB = 1 << 20
def take(size):
    return torch.empty(size * MiB, dtype=torch.uint8, device=D)
def grow():
    kept, idle = [], []
    for number in range(3):
        take(60)
        kept.append(take(2).fill_(number))
        idle.append(take(58).fill_(number))
    assert [one[-1].item() for one in idle] == [0, 1, 2]
    del idle
    big = take(150).fill_(7)
    assert [one[5].item() for one in kept] == [0, 1, 2]
    return int(big[-1].item())
"""
)


@pytest.mark.parametrize("variable", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_growing_sizes_fit(python: Callable[..., Ran], variable: str) -> None:
    settings = {"GRAFT_HOST_MEMORY": str(200 << 20), variable: "expandable_segments:True"}
    assert python(GROWTH + "print(json.dumps(told(grow)))", **settings).value() == "7"


def test_they_do_not_fit_without(python: Callable[..., Ran]) -> None:
    ran = python(GROWTH + "print(json.dumps(told(grow)))", GRAFT_HOST_MEMORY=str(200 << 20))
    assert "OutOfMemoryError" in ran.value()


def test_figures_and_snapshot(python: Callable[..., Ran]) -> None:
    ran = python(
        GROWTH
        + """
g.record_memory_history()
first, second = take(30), take(10)
now = g.memory_stats()
segments = g.memory_snapshot()
del first
g.empty_cache()
after = g.memory_stats()
holes = g.memory_snapshot()
again = take(20)
actions = [one["action"] for one in g.memory._snapshot()["device_traces"][0]]
print(json.dumps({
    "reserved": now["reserved_bytes.all.current"] // MiB, "segments": now["segment.all.current"],
    "snapshot": [[s["is_expandable"], s["total_size"] // MiB, len(s["blocks"])] for s in segments],
    "after": after["reserved_bytes.all.current"] // MiB,
    "holes": [[s["is_expandable"], s["total_size"] // MiB] for s in holes],
    "reused": again.data_ptr() == segments[0]["address"], "actions": actions,
    "free": g.mem_get_info()[1] - g.mem_get_info()[0] >= 30 * MiB,
}))
""",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
    )
    said = ran.value()
    assert said["reserved"] == 40
    assert said["segments"] == 1
    assert said["snapshot"] == [[True, 40, 2]]
    assert said["after"] == 10
    assert said["holes"] == [[True, 10]]
    assert said["reused"]
    assert said["actions"].count("segment_map") == 3
    assert said["actions"].count("segment_unmap") == 1
    assert said["free"]


def test_streams_graphs_and_messages_work(python: Callable[..., Ran]) -> None:
    ran = python(
        GROWTH
        + """
import torch.multiprocessing.reductions as messages
side = torch.Stream(D)
with side:
    x = torch.ones(3 * MiB, device=D)
    y = x * 2
side.synchronize()
graph = torch.accelerator.Graph()
z = torch.zeros(1000, device=D)
with g.graph(graph):
    w = z + 1
z.fill_(4)
graph.replay()
pool = g.MemPool()
with g.use_mem_pool(pool):
    p = take(3).fill_(9)
kinds = sorted({s["is_expandable"] for s in g.memory_snapshot()})
print(json.dumps([y.sum().item(), w.sum().item(), int(p[0]), kinds]))
""",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
    )
    assert ran.value() == [6.0 * (1 << 20), 5000.0, 9, [False, True]]
