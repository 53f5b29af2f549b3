"""Models train on drivers that can do little as they do on the CPU: losses, weights, running statistics."""

from __future__ import annotations

import pytest

import limits
from sandbox import interpret, program


@pytest.mark.timeout(600)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "limit",
    ["memory_only", "rejects_all", "rejects_even", "rejects_odd", "eight_unsaid", "few_dtypes"],
)
def test_models_train_as_on_the_cpu(limited, limit, compiled):
    settings = limited(limit) | {
        "COMPILED": str(int(compiled)),
        "ALL_FALL_BACK": str(int(limit in limits.WITHOUT_KERNELS)),
    }
    ran = interpret(program("tests/drivers/limited_training.py"), timeout=500, **settings)
    assert "trained" in ran.good().out
