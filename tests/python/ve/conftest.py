"""Fixtures of the slot's tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox import ROOT, TOLD, Ran, interpret


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
def card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What tools/emulated-ve sets. It builds the card; one process at a time does."""
    lock = tmp_path_factory.getbasetemp().parent / "emulated_card"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        told = subprocess.run(
            [ROOT / "tools/emulated-ve", "env", "-0"], check=True, capture_output=True, text=True,
            env=os.environ | {"VEDA_VISIBLE_DEVICES": ""},
        ).stdout  # fmt: skip
    pairs = (line.strip().partition("=") for line in told.replace("\n", "\0").split("\0"))
    return {name: value for name, _, value in pairs
            if name.startswith(("GRAFT_VE", "EMULATED_VEDA_"))}  # fmt: skip


@pytest.fixture
def on_card(card: dict[str, str]) -> Callable[..., Ran]:
    def run(code: str, **more: str) -> Ran:
        return interpret(TOLD + textwrap.dedent(code), **card | {"GRAFT_DEVICES": "nothing"} | more)

    return run
