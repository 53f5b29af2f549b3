"""tests/vendor/test_fixed_function.py: networks train on a chip whose kernels are fixed functions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sandbox import doctor, interpret, program

ROOT = Path(__file__).resolve().parents[2]
CHIP = Path(__file__).parent / "fixed_function"


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings with which Graft finds the chip, built as its vendor builds it."""
    library = tmp_path_factory.mktemp("chip") / "fixed_function.so"
    sources = sorted(str(path) for path in CHIP.glob("*.cpp"))
    subprocess.run(
        ["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{ROOT}/include", *sources, "-o", str(library)],
        check=True,
    )  # fmt: skip
    return {"GRAFT_DRIVER_PATH": str(library), "GRAFT_DEVICES": "fixed_function"}


SOFTMAX = """
x = torch.tensor([[1.0, 2.0, 3.0]])
y = x.to(D).softmax(1)
print(json.dumps([y.cpu().tolist(), x.softmax(1).tolist(), torch.get_device_module(D).fallback.total()]))
"""


def test_an_operator_runs_on_the_chip(chip):
    found, expected, fallbacks = interpret(SOFTMAX, **chip).value()
    assert found == [pytest.approx(expected[0])]
    assert fallbacks == 0


def test_the_chip_computes_not_graft(chip):
    found, expected, _ = interpret(SOFTMAX, FIXED_FUNCTION_DROP="1", **chip).value()
    assert found != [pytest.approx(expected[0])]


# Linear maps to Graft's kernels, operators to a vendor.
RESIZED = """
import torch.nn.functional as F
x = torch.arange(24.0).reshape(1, 2, 3, 4)
works = (lambda x: F.interpolate(x, size=(7, 5)), lambda x: F.interpolate(x, scale_factor=1.7),
         lambda x: F.pad(x, (1, 3, 2, 0), "reflect"), lambda x: F.pad(x, (2, 0, 1, 1), "replicate"))
found = []
for work in works:
    with torch.get_device_module(D).kernels() as ran:
        result = work(x.to(D))
    found.append([torch.equal(result.cpu(), work(x)), ran.total()["vendor"]])
print(json.dumps(found))
"""


def test_images_are_resized_and_padded_by_the_chip(chip):
    for same, launches in interpret(RESIZED, **chip).value():
        assert same
        assert launches > 0


FAILING = """
x = torch.ones(2, 3, device=D)
try:
    x.softmax(1)
except RuntimeError as error:
    print(str(error).splitlines()[0])
print((x + 1).sum().item(), torch.get_device_module(D).fallback.total())
"""


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("FIXED_FUNCTION_FAIL", "operation_plan failed for softmax float32[2, 3] float32[2, 3]"),
        ("FIXED_FUNCTION_REFUSE", "operation_execute refused softmax, for which operation_plan"),
    ],
)
def test_a_vendor_that_fails_raises_and_the_device_goes_on(chip, variable, said):
    told, rest = interpret(FAILING, **{variable: "softmax"}, **chip).good().out.splitlines()
    assert said in told
    assert "fixed_function" in told
    assert rest == "12.0 0"


FAILING_LATE = """
graft = torch.get_device_module(D)
x = torch.arange(6.0).reshape(2, 3).to(D)
other = torch.ones((), device=D)
mode = os.environ["MODE"]
call = lambda: x.mm(x.t())
if mode == "compiled":
    call = torch.compile(call)
elif mode == "captured":
    graph = graft.Graph()
    with graft.graph(graph):
        result = x.mm(x.t())
    call = lambda: (graph.replay(), result)[1]
for _ in range(3):
    call()
graft.synchronize()

def told(wait):
    try:
        return wait()
    except RuntimeError as error:
        return str(error)

found = []
for wait in (graft.synchronize, other.item):
    os.environ["FIXED_FUNCTION_FAIL_LATE"] = "matmul"
    call()
    del os.environ["FIXED_FUNCTION_FAIL_LATE"]
    found.append([told(wait), told(wait)])
same = torch.equal(call().cpu(), x.cpu() @ x.cpu().t())
print(json.dumps([found, same, graft.fallback.total()]))
"""


@pytest.mark.parametrize("mode", ["eager", "captured", "compiled"])
def test_work_that_fails_late_is_told_once_and_the_device_goes_on(chip, mode):
    found, same, fallbacks = interpret(FAILING_LATE, MODE=mode, **chip).value()
    for (error, after), done in zip(found, (None, 1.0), strict=True):
        assert error.startswith("aten::mm failed on graft:0 (driver 'fixed_function'): ")
        assert "LAUNCH_FAILED: the unit of matmul stopped" in error
        assert after == done
    assert same
    assert fallbacks == 0


@pytest.mark.timeout(600)
def test_what_a_vendor_ran_before_a_missing_kernel_is_not_done_twice(chip):
    names = set(re.findall(r'\{"(\w+)",', "".join(path.read_text() for path in CHIP.glob("*.cpp"))))
    failed, counted = interpret(
        program("tests/vendor/lacking.py"), timeout=500, OPERATORS=" ".join(sorted(names)), **chip
    ).value()
    assert failed == {}, failed
    assert counted["cases"] >= 400, counted
    assert counted["lacking"] >= 30, counted


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["eager", "captured", "optimize", "compiled"])
@pytest.mark.parametrize("network", ["ResNet-50", "GPT-2"])
def test_networks_train_as_on_the_cpu(chip, network, mode):
    settings = chip | {"MODE": mode, "NETWORK": network}
    ran = interpret(program("tests/vendor/training.py"), timeout=800, **settings).good()
    print(ran.out)
    assert "equal" in ran.out


@pytest.mark.timeout(300)
def test_a_network_is_wrong_without_the_chips_work(chip):
    settings = chip | {"MODE": "eager", "NETWORK": "GPT-2", "FIXED_FUNCTION_DROP": "1"}
    ran = interpret(program("tests/vendor/training.py"), timeout=280, **settings)
    assert "AssertionError: ('inference'" in ran.err
    assert "equal" not in ran.out


KERNELS = """
x = torch.ones(4, device=D)
graft = torch.get_device_module(D)
with graft.kernels() as ran:
    (x + 1).erfinv()
print(json.dumps(ran.shares()))
"""


def test_the_doctor_counts_the_chips_operators(chip):
    found = re.search(r"kernels of its vendor's for (\d+) operators", doctor(**chip).stdout)
    assert found
    assert int(found[1]) >= 25


CAPTURED = """
graft = torch.get_device_module(D)
x = torch.ones(2, 4, device=D)
graph = graft.Graph()
with graft.graph(graph):
    (x + 1).softmax(1)
with graft.kernels() as ran:
    for _ in range(3):
        graph.replay()
print(json.dumps(ran.shares()))
"""


def test_a_captured_graph_counts_at_each_replay(chip):
    shares = interpret(CAPTURED, **chip).value()
    vendor = {"vendor": 3, "library": 0, "generated": 0, "cpu": 0}
    assert shares == {"aten::add.Tensor": vendor, "aten::_softmax": vendor}


def test_kernels_tells_who_computed(chip):
    shares = interpret(KERNELS, **chip).value()
    assert shares["aten::add.Tensor"] == {"vendor": 1, "library": 0, "generated": 0, "cpu": 0}
    assert [one["cpu"] for name, one in shares.items() if "erfinv" in name] == [1]
