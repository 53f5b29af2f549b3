# tests/python/compiler/conftest.py: what the tests of compiled functions begin with.
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import torch_graft.compiler as graft_compiler


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing is compiled before the test nor kept after it, and no report is there."""
    torch._dynamo.reset()
    graft_compiler.reset_reports()
    yield
    torch._dynamo.reset()
