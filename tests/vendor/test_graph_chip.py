"""A chip whose vendor brings a compiler of graphs and no kernels: what users see of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import ROOT, Ran, doctor, interpret, program

SOURCES = ROOT / "tests/vendor/graph_chip"
# A model, its input, and one compiled call of it; the error as text.
CALL = """
import warnings
import torch_graft.compiler as compiler
from torch.nn import functional as F
warnings.simplefilter("always")
w = torch.linspace(-1, 1, 12).view(3, 4)
x = torch.linspace(-2, 2, 8).view(2, 4)
def f(x, w):
    return (F.linear(x, w).relu() + 1).tanh()
def call():
    return torch.compile(f)(x.to(D), w.to(D)).cpu()
def told():
    try:
        return "equal" if torch.allclose(call(), f(x, w)) else "wrong"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""
COUNTS = "print([(one.counts().vendor, one.counts().vendor_graphs, one.counts().nodes) for one in compiler.reports()])"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver, built as its vendor would: against the headers of the ABI alone."""
    made = tmp_path_factory.mktemp("graph_chip") / "graft_graph_chip.so"
    command = ["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{ROOT}/include",
               *map(str, sorted(SOURCES.glob("*.cpp"))), "-o", str(made)]  # fmt: skip
    subprocess.run(command, check=True)
    return made


Run = Callable[..., Ran]


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Run:
    """Runs code where the chip is the only device; keywords are variables of the environment."""

    def start(code: str, **more: str) -> Ran:
        settings = {"GRAFT_DRIVER_PATH": str(library), "GRAFT_DEVICES": "graph_chip",
                    "GRAFT_FALLBACK": "off", "GRAFT_CACHE_DIR": str(tmp_path / "cache"),
                    "GRAPH_CHIP_LOG": str(tmp_path / "log")}  # fmt: skip
        return interpret(code, timeout=280, **(settings | more))

    return start


def log_of(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "log").read_text().splitlines()]


@pytest.mark.parametrize("model", ["ResNet-50", "GPT-2", "MLP"])
def test_networks_run_whole_on_the_chip(run: Run, model: str) -> None:
    out = run(program("tests/vendor/graph_chip_models.py"), CASES=model).good().out
    print(out)
    assert "equal" in out
    shares = re.findall(r"(\d+) of (\d+) nodes in (\d+) graphs of the chip, (\d+) outside", out)
    assert len(shares) == 3  # inference, forward, backward
    statistics = 3 * 53  # of batch norms, which write them
    for inside, nodes, graphs, outside in shares:
        assert int(graphs) == 1, out
        assert int(outside) in (0, statistics), out
        assert int(inside) == int(nodes) - int(outside), out


def test_the_chip_computes_what_is_compiled(run: Run) -> None:
    assert run(CALL + "print(told())").good().out.split() == ["equal"]
    dropped = run(CALL + "print(told())", GRAPH_CHIP_MODE="drop").good().out
    assert dropped.split() == ["wrong"]


def test_the_report_counts_its_nodes(run: Run) -> None:
    out = run(CALL + "told()\n" + COUNTS).good().out
    [(inside, graphs, nodes)] = eval(out)
    assert graphs == 1
    assert inside == nodes > 1


def test_a_node_that_the_chip_does_not_take_runs_outside(run: Run, tmp_path: Path) -> None:
    ran = run(CALL + "print(told())\n" + COUNTS, GRAPH_CHIP_LEAVES="relu").good()
    first, counts = ran.out.splitlines()
    [(inside, graphs, nodes)] = eval(counts)
    assert first == "equal"
    assert (graphs, nodes - inside) == (2, 1)  # before and behind it
    assert log_of(tmp_path).count("run") == 2


def test_star_takes_all(run: Run) -> None:
    [(inside, graphs, nodes)] = eval(
        run(CALL + "told()\n" + COUNTS, GRAPH_CHIP_MODE="takes_all").good().out
    )
    assert (graphs, inside) == (1, nodes)


def test_optimize_uses_it(run: Run, tmp_path: Path) -> None:
    code = """
    import torch_graft
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    x = torch.linspace(-2, 2, 8).view(2, 4)
    with torch.no_grad():
        expected = model(x)
        optimized = torch_graft.optimize(model.to(D))
        torch.testing.assert_close(optimized(x.to(D)).cpu(), expected)
    """
    run(code).good()
    assert "run" in log_of(tmp_path)


def test_sizes_that_change_are_symbols(run: Run, tmp_path: Path) -> None:
    code = """
    def f(x, w):
        return (x @ w).softmax(-1).sum(0, keepdim=True) * x.shape[0]
    compiled = torch.compile(f, dynamic=True)
    w = torch.linspace(-1, 1, 12).view(4, 3)
    for rows in (2, 5, 9, 2):
        x = torch.linspace(-2, 2, rows * 4).view(rows, 4)
        torch.testing.assert_close(compiled(x.to(D), w.to(D)).cpu(), f(x, w))
    """
    run(code).good()
    assert log_of(tmp_path) == ["compile", "load", *["run"] * 4]


def test_a_setting_turns_it_off(run: Run, tmp_path: Path) -> None:
    ran = run(CALL + "print(told())\n" + COUNTS, GRAFT_GRAPH_COMPILER="0").good()
    first, counts = ran.out.splitlines()
    assert first == "equal"
    assert eval(counts)[0][:2] == (0, 0)
    assert not (tmp_path / "log").exists()


def test_captured_graphs_run_it(run: Run, tmp_path: Path) -> None:
    code = (
        CALL
        + """
compiled = torch.compile(f)
given, weights = x.to(D), w.to(D)
compiled(given, weights)
compiled(given, weights)
module = torch.get_device_module(D)
graph = module.Graph() if hasattr(module, "Graph") else module.CUDAGraph()
with module.graph(graph):
    out = compiled(given, weights)
for scale in (1, 3, -2):
    given.copy_(scale * x)
    graph.replay()
    torch.testing.assert_close(out.cpu(), f(scale * x, w))
"""
    )
    run(code).good()
    assert log_of(tmp_path).count("run") == 5


@pytest.mark.parametrize("mode", ["refuses", "takes_nothing"])
def test_what_it_refuses_goes_on_as_without_it(run: Run, mode: str) -> None:
    ran = run(CALL + "print(told())\n" + COUNTS, GRAPH_CHIP_MODE=mode).good()
    first, counts = ran.out.splitlines()
    assert first == "equal"
    assert eval(counts)[0][:2] == (0, 0)
    assert "graph compiler" not in ran.err


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("compile_fails", ["COMPILE_ERROR", "no registers are left", "graph inference"]),
        ("offer_fails", ["graph_offer", "the chip's compiler fell over", "graph inference"]),
        ("nonsense", ['"%no_such_node"', "graph inference", "Ask its vendor"]),
        ("not_utf8", ['"??"', "graph inference", "Ask its vendor"]),
    ],
)
def test_its_failures_are_told_and_the_graph_runs(run: Run, mode: str, words: list[str]) -> None:
    ran = run(CALL + "print(told())", GRAPH_CHIP_MODE=mode).good()
    assert ran.out.split() == ["equal"]
    for word in words:
        assert word in ran.err, ran.err


def test_a_run_that_fails_raises_and_leaves_the_device_usable(run: Run) -> None:
    code = (
        CALL
        + """
os.environ["GRAPH_CHIP_MODE"] = "run_fails"
print(told())
del os.environ["GRAPH_CHIP_MODE"]
print(told())
"""
    )
    first, second = run(code).good().out.splitlines()
    for word in (
        "vendor graph inference",
        "executable_run",
        "LAUNCH_FAILED",
        "the chip is too hot",
    ):
        assert word in first
    assert second == "equal"


def test_a_run_that_fails_late_names_its_graph(run: Run) -> None:
    code = (
        CALL
        + """
os.environ["GRAPH_CHIP_MODE"] = "fails_late"
print(told())
del os.environ["GRAPH_CHIP_MODE"]
print(told())
"""
    )
    first, second = run(code).good().out.splitlines()
    for word in ("vendor graph inference", "LAUNCH_FAILED", "stopped in the middle of a graph"):
        assert word in first
    assert second == "equal"


def test_blobs_are_kept_on_disk(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        run(CALL + "assert told() == 'equal'").good()
    assert log_of(tmp_path) == ["compile", "load", "run", "load", "run"]


def test_a_blob_of_another_build_is_compiled_again(run: Run, tmp_path: Path) -> None:
    for build in ("1", "2", "2"):
        run(CALL + "assert told() == 'equal'", GRAPH_CHIP_BUILD=build).good()
    assert log_of(tmp_path) == [*["compile", "load", "run"] * 2, "load", "run"]


def test_a_damaged_blob_is_compiled_again(run: Run, tmp_path: Path) -> None:
    run(CALL + "assert told() == 'equal'").good()
    [blob] = (tmp_path / "cache").iterdir()
    blob.write_bytes(blob.read_bytes()[:-9])
    ran = run(CALL + "assert told() == 'equal'").good()
    assert "a damaged file was removed" in ran.err
    assert log_of(tmp_path) == ["compile", "load", "run"] * 2


def test_a_full_disk_costs_only_the_cache(run: Run) -> None:
    ran = run(CALL + "print(told())", GRAFT_CACHE_DIR="/dev/full/cache").good()
    assert ran.out.split() == ["equal"]
    assert "kernel cache" in ran.err


def test_the_profiler_names_it(run: Run) -> None:
    code = (
        CALL
        + """
told()
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as found:
    told()
print(sorted({event.name for event in found.events()}))
"""
    )
    assert "vendor graph inference" in run(code).good().out


def test_the_doctor_names_it(library: Path) -> None:
    ran = doctor(GRAFT_DRIVER_PATH=str(library), GRAFT_DEVICES="graph_chip")
    assert "graph compiler" in ran.stdout, ran.stdout


def test_the_checker_tries_it(library: Path) -> None:
    import torch_graft

    checker = Path(torch_graft.__file__).parent / "bin/graft-driver-check"
    good = subprocess.run([checker, str(library)], capture_output=True, text=True, timeout=100)
    assert good.returncode == 0, good.stdout
    assert "graft.graph_compiler: an executable runs with each size" in good.stdout
    dropped = os.environ | {"GRAPH_CHIP_MODE": "drop"}
    bad = subprocess.run(
        [checker, str(library)], env=dropped, capture_output=True, text=True, timeout=100
    )
    assert bad.returncode == 1, bad.stdout
    assert "relu(x + w) is wrong with 4 rows" in bad.stdout
