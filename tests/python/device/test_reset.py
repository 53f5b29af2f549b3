# tests/python/device/test_reset.py: a device that was lost comes back, and what was on it does not.
"""torch.graft.reset_device after GRAFT_HOST_FAULTS lost the device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox import TOLD, Ran, build_c

pytestmark = [pytest.mark.host_only, pytest.mark.both_modes]

# Commands until the planted fault strikes.
LOSE = (
    TOLD
    + """
import threading
g = torch.get_device_module(D)

def lose():
    for _ in range(1000):
        torch.zeros(4, device=D).cpu()

old = torch.arange(4.0, device=D)
view = old[1:]
side = torch.Stream(D)
event, other = torch.Event(D), torch.Event(D)
event.record()
graph = torch.accelerator.Graph()
with g.graph(graph):
    captured = old * 2
"""
)


def test_new_work_runs_and_old_tensors_say_why(python: Callable[..., Ran]) -> None:
    ran = python(
        LOSE
        + """
lost = told(lose)
again = told(lambda: torch.ones(2, device=D) + 1)
g.reset_device()
print(json.dumps({
    "lost": lost, "again": again,
    "new": (torch.ones(3, device=D) * 2).tolist(),
    "side": told(lambda: (side.synchronize(), 5)[1]),
    "add": told(lambda: old + 1), "view": told(lambda: view.cpu()), "item": told(lambda: old[0].item()),
    "write": told(lambda: old.fill_(1)), "from": told(lambda: torch.ones(4, device=D).copy_(old)),
    "event": told(event.query), "waits": told(lambda: torch.accelerator.current_stream().wait_event(event)),
    "graph": told(graph.replay), "fallback": told(lambda: torch.linalg.eigvals(old.reshape(2, 2))),
    "anew": told(lambda: (event.record(), event.synchronize(), event.query())[2]),
    "unused": told(lambda: (other.record(), other.synchronize(), other.query())[2]),
    "freed": told(lambda: (globals().pop("old"), globals().pop("view"), 1)[2]),
    "held": g.memory_allocated(), "not lost": told(g.reset_device),
}))
""",
        GRAFT_HOST_FAULTS="lost:60",
    )
    said = ran.value()
    assert "is lost (during" in said["lost"], said
    assert "reset_device(0), or restart the process" in said["lost"]
    assert said["again"] == said["lost"]
    assert said["new"] == [2.0, 2.0, 2.0]
    for name in ("add", "view", "item", "write", "from", "event", "waits", "graph", "fallback"):
        assert "was reset since. Tensors, events and graphs made before are gone" in said[name], (
            name
        )
    assert said["side"] == "5"
    assert said["anew"] == said["unused"] == "True"
    assert said["freed"] == "1"
    assert said["held"] == 0
    assert "is not lost: only a lost device can be reset" in said["not lost"]


def test_every_operand_of_a_kernel_is_asked_while_it_lives(python: Callable[..., Ran]) -> None:
    """PyTorch's own iterator of glu holds tensors that are gone."""
    ran = python(
        LOSE
        + """
told(lose)
g.reset_device()
x = torch.arange(12.0).reshape(2, 6)
print([torch.nn.functional.glu(x.to(D)).cpu().allclose(torch.nn.functional.glu(x)) for _ in range(9)])
""",
        GRAFT_HOST_FAULTS="lost:60",
        MALLOC_PERTURB_="165",
    )
    assert ran.good().out.strip() == str([True] * 9)


def test_other_threads_and_streams_go_on(python: Callable[..., Ran]) -> None:
    ran = python(
        LOSE
        + """
import queue
asked, answers = queue.Queue(), queue.Queue()
def work():
    with side:
        while asked.get():
            answers.put(told(lambda: (torch.full((2,), 3.0, device=D) * 2).tolist()))
thread = threading.Thread(target=work)
thread.start()
def ask():
    asked.put(True)
    return answers.get(timeout=60)
first = ask()
told(lose)
lost = ask()
g.reset_device(0)
after = ask()
asked.put(False)
thread.join()
with side:
    beside = (torch.ones(3, device=D) + 1).tolist()
model = torch.compile(torch.nn.Linear(4, 2).to(D))
shape = list(model(torch.ones(3, 4, device=D)).shape)
print(json.dumps([first, lost, after, beside, shape]))
""",
        GRAFT_HOST_FAULTS="lost:90",
    )
    first, lost, after, beside, shape = ran.value()
    assert first == after == "[6.0, 6.0]"
    assert "is lost" in lost
    assert beside == [2.0, 2.0, 2.0]
    assert shape == [3, 2]


def test_a_compiled_model_of_before_says_why_and_a_new_one_runs(python: Callable[..., Ran]) -> None:
    ran = python(
        LOSE
        + """
model = torch.compile(torch.nn.Linear(4, 2).to(D))
with torch.no_grad():
    model(torch.ones(3, 4, device=D))
    told(lose)
    g.reset_device()
    before = told(lambda: model(torch.ones(3, 4, device=D)).cpu())
    with torch.no_grad():
        weights = torch.nn.Linear(4, 2).state_dict()
    fresh = torch.nn.Linear(4, 2).to(D)
    fresh.load_state_dict(weights)
    after = torch.compile(fresh)(torch.ones(3, 4, device=D)).cpu().shape
print(json.dumps([before, list(after)]))
""",
        GRAFT_HOST_FAULTS="lost:150",
    )
    before, after = ran.value()
    assert "was reset since" in before
    assert after == [3, 2]


def test_a_driver_that_cannot_says_so(python: Callable[..., Ran], tmp_path: Path) -> None:
    source = """
#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query
static graft_status lost(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                         uint32_t tag) {
  (void)stream, (void)to, (void)from, (void)bytes, (void)kind, (void)tag;
  return GRAFT_DEVICE_LOST;
}
graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table mine = kTable;
  mine.copy = lost;
  return graft_driver_fill(table, &mine);
}
"""
    ran = python(
        TOLD
        + """
g = torch.get_device_module(D)
print(json.dumps([told(lambda: torch.ones(3).to(D)), told(g.reset_device)]))
""",
        GRAFT_DRIVER_PATH=build_c(tmp_path / "mortal.so", source),
        GRAFT_DEVICES="tiny",
    )
    lost, reset = ran.value()
    assert "every later call fails: restart the process" in lost
    assert "cannot be reset: its driver lacks device_reset. Restart the process." in reset


def test_a_device_that_works_is_not_reset(module: Any) -> None:
    with pytest.raises(RuntimeError, match="is not lost"):
        module.reset_device()
