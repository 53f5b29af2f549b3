"""Fixtures of the device's tests: its name, its indices, its module, a fresh interpreter."""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandbox import NAME, Ran, interpret


@pytest.fixture(scope="session")
def python() -> Callable[..., Ran]:
    return interpret


@pytest.fixture(scope="session")
def device() -> str:
    return NAME


@pytest.fixture(scope="session")
def second() -> str:
    """Another device of the same type (on the CPU, which has one, the same)."""
    return NAME if NAME == "cpu" else f"{NAME}:1"


@pytest.fixture(scope="session")
def module() -> Any:
    """The device's module, torch.graft."""
    import torch

    return torch.get_device_module(NAME)


@pytest.fixture(autouse=True)
def _device_stays_trusted() -> Iterator[None]:
    """Fails a test that gives a native stream's handle away: weights are then prepared at each call, in
    all tests that follow in this process."""
    yield
    graft = sys.modules.get("torch_graft")
    if (
        graft is None
        or NAME == "cpu"
        or not graft._C.is_initialized()
        or not graft._C.device_count()
    ):
        return
    import torch

    watch = graft._C.TensorWatch([torch.empty(1, device=NAME)])
    watch.look()
    assert watch.trusted(), "give a native handle away in a fresh interpreter only (fixture python)"


@pytest.fixture
def allocated(module: Any) -> Callable[[], int]:
    """Asks for the bytes in use, without what earlier tests left in cycles of references or threads.

    A thread of autograd drops what it worked on a moment after backward() has returned, so the number is
    asked for until it stays.
    """

    def bytes_now() -> int:
        gc.collect()
        module.synchronize()
        return int(module.memory_allocated())

    def bytes_in_use() -> int:
        found, before = bytes_now(), -1
        while found != before:
            time.sleep(0.05)
            found, before = bytes_now(), found
        return found

    return bytes_in_use


@pytest.fixture
def native(module: Any) -> Iterator[None]:
    """Fails a test in which an operator fell back."""
    module.fallback.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert module.fallback.counts() == {}


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing is compiled before the test nor kept after it, and no report is there."""
    import torch

    import torch_graft.compiler as graft_compiler

    torch._dynamo.reset()
    graft_compiler.reset_reports()
    yield
    torch._dynamo.reset()
