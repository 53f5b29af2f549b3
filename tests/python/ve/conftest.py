"""Fixtures of the slot's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import Ran, interpret

# Where graft has no devices on purpose, it says so once in each process.
_ALONE = os.environ.get("GRAFT_DEVICES") == "nothing"


@pytest.fixture(scope="session")
def ve() -> Any:
    import torch

    return torch.ve


@pytest.fixture(autouse=True)
def first_device() -> Iterator[None]:
    import torch

    yield
    torch.ve.set_device(0)


@pytest.fixture(scope="session")
def python() -> Any:
    def run(code: str, **environment: str | None) -> Ran:
        return interpret(code, PYTHONWARNINGS="default", **environment)

    return run


@pytest.fixture(scope="session")
def alone() -> bool:
    """Whether the slot alone has the devices."""
    return _ALONE
