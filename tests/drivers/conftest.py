"""Fixtures of the tests on limited drivers (limited.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import limits


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return limits.build(tmp_path_factory.mktemp("limits"))


@pytest.fixture(scope="session")
def limited(library: Path) -> Callable[[str], dict[str, str]]:
    """The variables by which a process has the device of that driver alone, and counts in silence."""

    def settings(name: str) -> dict[str, str]:
        driver = next(one for one in limits.limited() if one.name == name)
        return driver.settings(library) | {"GRAFT_FALLBACK": "off"}

    return settings
