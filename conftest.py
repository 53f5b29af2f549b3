# conftest.py: applies tests/expectations.toml, the one list of skips and expected failures, to tests and conformance/tests.
"""A row marks its test; an expected failure that passes fails, and so does a skip without a row.

With GRAFT_SHARE=K/N, as `make test` sets it, a pass runs the K-th of N parts of the cases: the seed of the
order and the name of the case choose the part, so two passes with another K share the cases, and the next
run divides them otherwise. Of its share, what is marked seldom runs under one seed in three; what is
marked every_run is in every share.
The passes that name a mode of the host driver take two parts of N of what only one of them runs, and divide
between them all of what both_modes marks.
"""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

# A shell lets what runs in the background ignore this signal; programs that tests interrupt inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Two virtual devices for every test; here, because collecting any folder may already count devices.
os.environ.setdefault("GRAFT_HOST_DEVICES", "2")
# They are torch.device("ve")'s, too.
os.environ.setdefault("GRAFT_VE_DEVICES", "host")
# PoCL, where it is installed, takes a second to say what it has, in each of the many processes that
# tests start. A test of OpenCL's devices unsets this, and a whole run names them.
if "opencl" not in os.environ.get("GRAFT_DEVICES", ""):
    os.environ.setdefault("OCL_ICD_VENDORS", "/nonexistent")

import pytest  # noqa: E402
import tomllib  # noqa: E402

ROOT = Path(__file__).parent
LISTING = ROOT / "tests" / "expectations.toml"
IN_BOTH = (("tests", "python"), ("tests", "drivers"))  # what the inline pass collects, too
ROWS = tomllib.loads(LISTING.read_text()).get("expectation", [])


def row_of(nodeid: str) -> dict[str, str] | None:
    """The row that names this test, all of its parameters, its class or its file."""
    for row in ROWS:
        name = row["test"]
        if row.get("driver", "") not in os.environ.get("GRAFT_DEVICES", ""):
            continue
        if "lacking" in row and find_spec(row["lacking"]) is not None:
            continue
        if nodeid == name or nodeid.startswith((f"{name}[", f"{name}::")):
            return row
    return None


def part_of(item: pytest.Item, seed: int, parts: int, purpose: str) -> int:
    """The part of 1 to parts that this case falls into, another one with each seed."""
    return 1 + zlib.crc32(f"{purpose} {seed} {item.nodeid}".encode()) % parts


def left_out(item: pytest.Item, seed: int) -> bool:
    """True if this case is left to another pass, or to another seed."""
    share = os.environ.get("GRAFT_SHARE")
    if share is None:
        return False
    turn, parts = map(int, share.split("/"))

    def marked(name: str) -> bool:
        return item.get_closest_marker(name) is not None

    if marked("every_run"):
        return False
    if marked("seldom") and part_of(item, seed, 3, "seldom") != 1:
        return True
    part = part_of(item, seed, parts, "share")
    if "GRAFT_HOST_MODE" not in os.environ:
        return part != turn
    if marked("both_modes"):
        return (turn == 1) != (part <= parts // 2)
    if marked("one_mode") or item.path.relative_to(ROOT).parts[:2] not in IN_BOTH:
        return part > 2
    return part != turn


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("randomly_seed", 0)
    left = [item for item in items if left_out(item, seed)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if not left_out(item, seed)]
    for item in items:
        row = row_of(item.nodeid)
        if row and row["kind"] == "skip":
            item.add_marker(pytest.mark.skip(reason=row["reason"]))
        elif row:
            item.add_marker(pytest.mark.xfail(reason=row["reason"], strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    report = yield
    if report.skipped and row_of(item.nodeid) is None:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped without a row in {LISTING.name}"
    return report
