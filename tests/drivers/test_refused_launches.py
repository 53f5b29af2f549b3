"""A kernel in the middle of an operator cannot be had: what ran before it is not computed with twice."""

from __future__ import annotations

import pytest

from sandbox import interpret, program


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("group", "calls", "late"),
    [
        ("operators", 400, 120),
        ("steps", 150, 900),
        ("statistics", 14, 25),
        ("others", 5, 3),
    ],
)
def test_what_ran_before_a_missing_kernel_is_not_done_twice(limited, group, calls, late):
    environment = limited("at_times") | {"GROUP": group}
    failed, counted = interpret(
        program("tests/drivers/refused_launches.py"), timeout=500, **environment
    ).value()
    assert failed == {}, "\n".join(f"{k}: {v[:120]!r}" for k, v in failed.items())
    assert counted["calls"] >= calls, counted
    assert counted["late"] >= late, counted
