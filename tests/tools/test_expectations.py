# tests/tools/test_expectations.py: the list of skips is obeyed, and nothing skips beside it.
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
ROW = '[[expectation]]\ntest = "tests/test_a.py{}"\nkind = "{}"\nreason = "so it is"\n'


def run(root: Path, rows: str, text: str) -> str:
    """Runs pytest on one test file beside a copy of the conftest; returns its summary line."""
    (root / "tests").mkdir()
    shutil.copy(CONFTEST, root / "tests")
    (root / "tests" / "expectations.toml").write_text(rows)
    (root / "tests" / "test_a.py").write_text("import pytest\n" + text)
    (root / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "tests"]
    environment = {**os.environ, "GRAFT_DEVICES": "host,own:1"}
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    output = ran.stdout
    return re.sub(r" in [\d.]+s", "", output.strip().splitlines()[-1])


FAILING = "def test_b():\n    assert False\n"
PASSING = "def test_b():\n    pass\n"
SKIPPING = "def test_b():\n    pytest.skip('no device')\n"
CASES = [
    ("", PASSING, "1 passed"),
    ("", SKIPPING, "1 failed"),
    ("", "@pytest.mark.xfail\n" + FAILING, "1 failed"),
    (ROW.format("::test_b", "skip"), FAILING, "1 skipped"),
    (ROW.format("", "skip"), SKIPPING, "1 skipped"),
    (ROW.format("::test_b", "xfail"), FAILING, "1 xfailed"),
    (ROW.format("::test_b", "xfail"), PASSING, "1 failed"),
    (ROW.format("::test_other", "xfail"), FAILING, "1 failed"),
    (ROW.format("::test_b", "skip") + 'driver = "own"\n', FAILING, "1 skipped"),
    (ROW.format("::test_b", "skip") + 'driver = "other"\n', FAILING, "1 failed"),
]


@pytest.mark.parametrize(("rows", "text", "summary"), CASES)
def test_outcome(rows, text, summary, tmp_path):
    assert run(tmp_path, rows, text) == summary
