"""tests/vendor/test_choice.py: who computes what a compiled graph would fuse, on a device with a compiler and kernels of
its vendor's, of which one is made slow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox import interpret
from torch_graft import drivers

ROOT = Path(__file__).resolve().parents[2]

SHARES = """
graft = torch.get_device_module(D)
def function(x):
    return ((x + x) * x).neg()
x = torch.linspace(-1, 1, 4096).to(D)
call = torch.compile(function)
call(x)
with graft.kernels() as ran:
    y = call(x)
torch.testing.assert_close(y.cpu(), function(x.cpu()))
"""
TOTAL = "print(json.dumps([ran.total()['vendor'], ran.total()['generated']]))\n"
BY_VENDOR, FUSED = [3, 0], [0, 1]


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings with which Graft finds the device alone."""
    library = tmp_path_factory.mktemp("driver") / "own_operations.so"
    subprocess.run(
        ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}",
         f'-DGRAFT_BASE_DRIVER="{drivers.host()}"',
         str(ROOT / "tests/drivers/own_operations.cpp"), "-o", str(library), "-ldl"],
        check=True,
    )  # fmt: skip
    return {"GRAFT_DRIVER_PATH": str(library), "GRAFT_DEVICES": "own_operations"}


def settings(device: dict[str, str], choice: str | None, slow: str) -> dict[str, str | None]:
    return {**device, "GRAFT_VENDOR_KERNELS": choice, "OWN_OPERATIONS_SLOW": slow}


@pytest.mark.parametrize("slow", ["vendor", "generated"])
@pytest.mark.parametrize(
    ("choice", "expected"), [(None, BY_VENDOR), ("always", BY_VENDOR), ("never", FUSED)]
)
def test_a_choice_without_measuring(device, choice, expected, slow):
    assert interpret(SHARES + TOTAL, **settings(device, choice, slow)).value() == expected


@pytest.mark.parametrize(("slow", "expected"), [("vendor", FUSED), ("generated", BY_VENDOR)])
def test_the_faster_one_is_kept(device, slow, expected):
    assert interpret(SHARES + TOTAL, **settings(device, "measure", slow)).value() == expected


AGAIN = """
torch._dynamo.reset()
with graft.kernels() as ran:
    torch.compile(function)(x)
"""


def test_a_group_is_measured_once(device):
    measured = settings(device, "measure", "vendor")
    assert interpret(SHARES + AGAIN + TOTAL, **measured).value() == FUSED


STATE = """
graft = torch.get_device_module(D)
x = torch.linspace(-1, 1, 4096).to(D)
torch.manual_seed(7)
state = graft.get_rng_state().tolist()
torch.accelerator.reset_peak_memory_stats()
before = torch.accelerator.memory_allocated()
torch.compile(lambda x: ((x + x) * x).neg())(x)
figures = [torch.accelerator.max_memory_allocated() - before, torch.accelerator.memory_allocated() - before]
print(json.dumps([figures, graft.get_rng_state().tolist() == state]))
"""


def test_random_numbers_and_peaks_stay(device):
    expected = interpret(STATE, **settings(device, "always", "generated")).value()
    assert expected[1] is True
    assert interpret(STATE, **settings(device, "measure", "generated")).value() == expected


CAPTURED = """
graft = torch.get_device_module(D)
x = torch.linspace(-1, 1, 4096).to(D)
graph = graft.Graph()
call = torch.compile(lambda x: ((x + x) * x).neg())
with graft.graph(graph):
    y = call(x)
with graft.kernels() as ran:
    graph.replay()
torch.testing.assert_close(y.cpu(), ((x.cpu() + x.cpu()) * x.cpu()).neg())
"""


BEHIND = """
call(x)
with graft.kernels() as ran:
    call(x)
"""


def test_a_capture_measures_nothing(device):
    measured = settings(device, "measure", "vendor")
    assert interpret(CAPTURED + TOTAL, **measured).value() == BY_VENDOR
    assert interpret(CAPTURED + BEHIND + TOTAL, **measured).value() == FUSED


LATE = """
x = torch.linspace(-1, 1, 4096).to(D)
call = torch.compile(lambda x: ((x + x) * x).neg())
torch.ones(3).to(D).index_select(0, torch.tensor([7]).to(D))
try:
    call(x)
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
torch.testing.assert_close(call(x).cpu(), -2 * x.cpu() * x.cpu())
"""


def test_a_failure_of_earlier_work_is_raised(device):
    ran = interpret(LATE, **settings(device, "measure", "vendor")).good()
    assert "index" in ran.out
    assert "without compiling" not in ran.err


WRONG = """
try:
    torch.compile(lambda x: (x + x).neg())(torch.ones(3, device=D))
except Exception as error:
    print(error)
print((torch.ones(3, device=D) + 1).sum().item())
"""


def test_another_value_raises(device):
    ran = interpret(WRONG, **settings(device, "sometimes", "vendor")).good()
    assert 'GRAFT_VENDOR_KERNELS is "sometimes"; give always, never or measure' in ran.out
    assert ran.out.splitlines()[-1] == "6.0"
