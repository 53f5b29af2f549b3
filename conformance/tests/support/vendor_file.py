"""What the tests of the pytest glue share: a run of made classes, and of a file in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path
from typing import Any

import torch

_BESIDE = torch._C._get_privateuse1_backend_name()
# The device of a package that is installed beside the runner, if there is one.
OTHERS = [] if _BESIDE == "privateuseone" else [_BESIDE]
DEVICES = ["cpu", *OTHERS]


def ran(*classes: type) -> dict[str, str]:
    """Test -> "" when it passed, else its message."""
    result = unittest.TestResult()
    for one in classes:
        unittest.defaultTestLoader.loadTestsFromTestCase(one).run(result)
    names = {n: "" for one in classes for n in unittest.defaultTestLoader.getTestCaseNames(one)}
    for test, text in [*result.failures, *result.errors, *result.skipped]:
        names[test.id().rpartition(".")[2]] = text
    return names


def scope() -> dict[str, Any]:
    """The globals() of a test file."""
    return {"__name__": __name__}


def pytest_of(folder: Path, source: str, **environment: str) -> tuple[str, str]:
    """The last line of a pytest run of a file, and all of its output."""
    (folder / "test_vendor.py").write_text(textwrap.dedent(source))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "--timeout=120",
    ]
    done = subprocess.run(
        [*command, "-W", "ignore", "test_vendor.py"], cwd=folder, capture_output=True, text=True,
        timeout=250, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout.strip().splitlines()[-1], done.stdout + done.stderr
