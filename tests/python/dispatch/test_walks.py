"""docs/develop/walks.md lists the functions between PyTorch's dispatcher and the driver's slot."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

import native_frames
import walk_page
from native_frames import PYTORCH, Call
from sandbox import ROOT, interpret, program
from torch_graft import drivers
from walk_page import Row, Walk

pytestmark = pytest.mark.one_mode

TEXT = walk_page.PAGE.read_text()
WALKS = walk_page.walks(TEXT)


@pytest.fixture(scope="module")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver that writes who calls it."""
    library = tmp_path_factory.mktemp("tracer") / "graft_traced.so"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}",
               str(ROOT / "tests/drivers/tracing.cpp"), "-o", str(library), "-ldl"]  # fmt: skip
    subprocess.run(command, check=True)
    return library


def unlisted(callers: list[str], chain: list[Row]) -> str | None:
    """The first of the callers that is not in the chain after those before it."""
    rows = iter(PYTORCH if row.layer == PYTORCH else row.name for row in chain)
    return next((caller for caller in callers if caller not in rows), None)


def crossings(chain: list[Row]) -> set[str]:
    """What another layer calls, which a trace shows; destructors may be inlined."""
    ours = [row for row in chain if row.layer not in (PYTORCH, "python", "driver")]
    return {
        row.name
        for before, row in pairwise(ours)
        if row.layer != before.layer and row.file.endswith(".cpp") and "~" not in row.name
    }


def fault(call: Call, chain: list[Row]) -> str | None:
    """Why the call did not come by this chain."""
    if call.slot != chain[-1].name:
        return f"it ends in {chain[-1].name}"
    if (name := unlisted(call.callers, chain)) is not None:
        return f"{name} is not listed, or not there, in {' > '.join(row.name for row in chain)}"
    missing = crossings(chain) - set(call.callers)
    return f"the call did not come by {sorted(missing)}" if missing else None


@pytest.mark.every_run
def test_the_page_agrees_with_the_sources() -> None:
    titles = ["Eager add", "Compiled call", "Allocation", "All-reduce"]
    assert [walk.title for walk in WALKS] == titles
    assert walk_page.wrong_rows(TEXT) == []


@pytest.mark.parametrize(
    ("right", "wrong", "finding"),
    [
        ("`Launch::peel`", "`Launch::unroll`", "Launch::unroll: not in src/kernels/"),
        ("`Launch::peel`", "`Loops::peel`", "Loops::peel: not in src/kernels/"),
        ("pointwise.cpp` | loops", "missing.cpp` | loops", "peel: not in .*/missing.cpp"),
        ("| kernels | `pointwise`", "| compiler | `pointwise`", "not of the layer compiler"),
        ("| kernels | `pointwise`", "| launch | `pointwise`", "launch is no layer"),
        ("executor.cpp` | binds", "step.h` | binds", "Frame::run_whole: .* does not name it"),
        ("`SlotCall::give`", "`CopyCommand::describe`", "CopyCommand::describe: .* does not name"),
        ("`kernel_launch`", "`launch_kernel`", "launch_kernel: not in include/graft/driver.h"),
        ("up, through `ExecutionHost`: makes", "makes", "output: from compiler to torch, through None"),
        ("up, through `ExecutionHost`", "up, through `Arena`", "Arena is no interface of compiler"),
        ("nodes/execution_host.h`", "run/memory.h`", "ExecutionHost is no interface of compiler"),
    ],
)  # fmt: skip
def test_a_wrong_page_is_found(right: str, wrong: str, finding: str) -> None:
    assert right in TEXT
    assert re.search(finding, "\n".join(walk_page.wrong_rows(TEXT.replace(right, wrong, 1))))


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.title)
def test_a_call_reaches_its_slots_as_listed(walk: Walk, tracer: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    ran = interpret(
        program("tests/python/dispatch/walk_calls.py"), timeout=250, GRAFT_DRIVER_PATH=str(tracer),
        GRAFT_DEVICES="traced", GRAFT_TRACED_DRIVER=drivers.host(), WALK=walk.title,
        TRACE=str(trace),
    )  # fmt: skip
    python, thread = ran.value()
    calls = native_frames.calls_in(trace)
    assert {call.thread for call in calls} == {str(thread)}
    listed = [row for row in walk.chains[0] if row.layer == "python"]
    assert python == [[row.name, row.file.removeprefix("python/torch_graft/")] for row in listed]
    for call in calls:
        faults = [fault(call, chain) for chain in walk.chains]
        assert None in faults, f"{call}: {faults}"
    for chain in walk.chains:
        seen = next((call for call in calls if fault(call, chain) is None), None)
        assert seen is not None, f"no call came by {' > '.join(row.name for row in chain)}"
        for name in seen.callers:
            rest = [row for row in chain if name not in (row.name, row.layer)]
            assert fault(seen, rest) is not None, f"without {name} the page would be as right"
