"""A vendor that takes no call is asked once for each layout, and Graft computes as without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox import ROOT, interpret
from torch_graft import drivers


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings with which a process has the device of asked.cpp alone."""
    library: Path = tmp_path_factory.mktemp("asked") / "asked.so"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}"]
    source = str(ROOT / "tests/drivers/asked.cpp")
    subprocess.run([*command, source, "-o", str(library), "-ldl"], check=True)
    return {
        "GRAFT_DRIVER_PATH": str(library), "GRAFT_DEVICES": "asked",
        "GRAFT_ASKED_DRIVER": str(drivers.host()),
    }  # fmt: skip


ADDING = """
import ctypes, threading
planned = ctypes.CDLL(os.environ["GRAFT_DRIVER_PATH"]).graft_asked_planned
graft = torch.get_device_module(D)
sizes = [(1,), (3, 5), (2, 3, 4)]
made = [[torch.ones(size, device=D), torch.empty(size, device=D)] for size in sizes]


def work(repeats):
    for x, o in made * repeats:
        torch.add(x, x, out=o)


counts = [planned()]
work(1)
counts.append(planned())
work(50)
threads = [threading.Thread(target=work, args=(50,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
counts.append(planned())
torch.add(*[torch.ones(7, device=D)] * 2)
counts.append(planned())
same = all((o.cpu() == 2).all().item() for _, o in made)
print(json.dumps([counts, same, graft.fallback.total()]))
"""


def test_a_layout_that_is_refused_is_asked_for_once(asked):
    counts, same, fallbacks = interpret(ADDING, GRAFT_ASKED="known", **asked).value()
    before, first, repeated, other = counts
    assert first - before == 3
    assert repeated == first
    assert other > repeated
    assert same
    assert fallbacks == 0


@pytest.mark.parametrize("said", ["nothing", None])
def test_a_vendor_that_knows_no_operator_is_asked_for_no_plan(asked, said):
    counts, same, fallbacks = interpret(ADDING, GRAFT_ASKED=said, **asked).value()
    assert counts == [0, 0, 0, 0]
    assert same
    assert fallbacks == 0


# More layouts than are kept for looking up without a lock.
MANY = """
graft = torch.get_device_module(D)
wrong = 0
for size in range(1, 9000):
    x = torch.ones(size, device=D)
    wrong += size % 1000 == 0 and (x + x).sum().item() != 2 * size
    x.add_(x)
print(json.dumps([bool(wrong), graft.fallback.total()]))
"""


def test_more_refusals_than_are_kept(asked):
    assert interpret(MANY, GRAFT_ASKED="known", **asked).value() == [False, 0]
