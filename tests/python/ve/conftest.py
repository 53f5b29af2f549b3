"""Fixtures of the slot's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import Ran, interpret


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
