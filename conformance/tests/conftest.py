# conformance/tests/conftest.py: makes support/ importable, and names the markers that these tests use.
from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("support")))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "seldom: takes a minute or searches at random")
    config.addinivalue_line("markers", "every_run: reads the package's own files, in seconds")
