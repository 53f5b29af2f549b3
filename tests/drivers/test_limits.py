"""A shard of the gate of tests/drivers/limits.py on each driver; `make limits` runs the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import limits
from record import Record

pytestmark = pytest.mark.both_modes

PARTS = {"host": 120, "opencl": 400}  # PoCL compiles the kernels of GPUs for long
DRIVERS = limits.limited()


def test_rows_are_found() -> None:
    names = [driver.name for driver in DRIVERS]
    assert len(names) > 12
    assert {"none", "memory_only", "small", "gpu_no_shuffles"} <= set(names)


@pytest.mark.seldom
@pytest.mark.timeout(600)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_shard(
    library: Path, tmp_path: Path, request: pytest.FixtureRequest, driver: limits.Driver
) -> None:
    seed = int(request.config.getoption("randomly_seed", 0) or 0)
    parts = PARTS[driver.base]
    part = 1 + (seed + DRIVERS.index(driver)) % parts
    verdict = limits.pass_gate(driver, library, tmp_path, f"{part}/{parts}", demos=False)
    assert verdict.cells > 0
    assert verdict.findings == [], f"shard {part}/{parts}"


@pytest.mark.parametrize(
    ("fallbacks", "accuracies", "findings"),
    [
        ({"aten::native_dropout": 9}, (0.99, 0.96, 0.98), 0),
        ({"aten::native_dropout": 9}, (0.99, 0.95, 0.96), 1),
        ({"aten::relu": 9}, (0.99, 0.96, 0.98), 1),
        ({}, (0.99, 0.96, 0.98), 1),
    ],
)
def test_accuracy_where_the_cpu_draws(
    fallbacks: dict[str, int], accuracies: tuple[float, ...], findings: int
) -> None:
    """Of other random numbers the mean of the seeds counts, of a whole driver's each seed."""
    checks = {"worst accuracy 96.00% >= 97%": False, "training had no fallback": not fallbacks}
    record = Record("(a) digits", "", 0.0, 0.0, 0, fallbacks, 0, checks, accuracies)
    verdict = limits.Verdict(DRIVERS[0])
    limits.judge_demos(verdict, [record.plain()])
    assert len(verdict.findings) == findings
