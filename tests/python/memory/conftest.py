"""Fixtures of the memory's tests."""

import gc

import pytest
import torch

from sandbox import interpret, program


@pytest.fixture(autouse=True)
def _settled():
    """What other tests left is freed before anything is counted."""
    torch.accelerator.synchronize()
    gc.collect()


@pytest.fixture(scope="session")
def pending():
    """Which memory is given out again while commands that use it are not done."""
    code = program("tests/python/memory/unfinished_copies.py")
    return interpret(code, GRAFT_HOST_MODE="async", GRAFT_HOST_DEVICES="2").value()
