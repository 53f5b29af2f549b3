# tests/conftest.py: applies tests/expectations.toml, the one list of skips and expected failures.
"""A row marks its test; an expected failure that passes fails, and so does a skip without a row.

With GRAFT_SHARE_MODES, as `make test` sets it, a case of tests/python or tests/drivers runs in one mode of
the host driver: the seed of the order and the name of the case choose which, so the asynchronous and the
inline pass share the cases, and the next run divides them otherwise. What both_modes marks runs in both.
Of what is marked seldom, each runs under one seed in three.
With GRAFT_HALF, as the pass on PoCL sets it, one half of the cases runs, which the seed chooses in the same
way, and whatever any_runtime marks.
"""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path

# A shell lets what runs in the background ignore this signal; programs that tests interrupt inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Two virtual devices for every test; here, because collecting any folder may already count devices.
os.environ.setdefault("GRAFT_HOST_DEVICES", "2")
# PoCL, where it is installed, takes a second to say what it has, in each of the many processes that
# tests start. A test of OpenCL's devices unsets this, and a whole run names them.
if "opencl" not in os.environ.get("GRAFT_DEVICES", ""):
    os.environ.setdefault("OCL_ICD_VENDORS", "/nonexistent")

import pytest  # noqa: E402
import tomllib  # noqa: E402

LISTING = Path(__file__).with_name("expectations.toml")
SHARED = ("python", "drivers")  # what the inline pass collects, too
ROWS = tomllib.loads(LISTING.read_text()).get("expectation", [])


def row_of(nodeid: str) -> dict[str, str] | None:
    """The row that names this test, all of its parameters, its class or its file."""
    for row in ROWS:
        name = row["test"]
        if row.get("driver", "") not in os.environ.get("GRAFT_DEVICES", ""):
            continue
        if nodeid == name or nodeid.startswith((f"{name}[", f"{name}::")):
            return row
    return None


def drawn(item: pytest.Item, seed: int, parts: int = 2) -> bool:
    """True for one part of the cases, another one with each seed."""
    return zlib.crc32(f"{seed} {item.nodeid}".encode()) % parts == 1


def left_out(item: pytest.Item, seed: int) -> bool:
    """True if this case is left to the other mode of the host driver, or to another seed."""

    def marked(*names: str) -> bool:
        return any(item.get_closest_marker(name) is not None for name in names)

    half, shared = "GRAFT_HALF" in os.environ, "GRAFT_SHARE_MODES" in os.environ
    if (half or shared) and marked("seldom") and not drawn(item, seed, 3):
        return True
    if half:
        return not (drawn(item, seed) or marked("any_runtime", "seldom"))
    folder = item.path.relative_to(LISTING.parent).parts[0]
    if not shared or folder not in SHARED or marked("both_modes", "one_mode"):
        return False
    return drawn(item, seed) != (os.environ["GRAFT_HOST_MODE"] == "inline")


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
