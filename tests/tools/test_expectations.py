# tests/tools/test_expectations.py: the list of skips is obeyed, and nothing skips beside it.
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
ROW = '[[expectation]]\ntest = "tests/test_a.py{}"\nkind = "{}"\nreason = "so it is"\n'


def run(root: Path, rows: str, text: str, **given: str) -> str:
    """Runs pytest on one test file beside a copy of the conftest; returns its summary line."""
    (root / "tests").mkdir(exist_ok=True)
    shutil.copy(CONFTEST, root)
    (root / "tests" / "expectations.toml").write_text(rows)
    (root / "tests" / "test_a.py").write_text("import pytest\n" + text)
    (root / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "tests"]
    kept = {k: v for k, v in os.environ.items() if k not in ("GRAFT_SHARE", "GRAFT_HOST_MODE")}
    environment = {**kept, "GRAFT_DEVICES": "host,own:1", **given}
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
    (ROW.format("::test_b", "skip") + 'lacking = "no_such_module"\n', FAILING, "1 skipped"),
    (ROW.format("::test_b", "skip") + 'lacking = "torch"\n', FAILING, "1 failed"),
]


@pytest.mark.parametrize(("rows", "text", "summary"), CASES)
def test_outcome(rows, text, summary, tmp_path):
    assert run(tmp_path, rows, text) == summary


def passed(summary: str) -> int:
    return int(re.search(r"(\d+) passed", summary)[1])


def test_the_parts_of_the_cases_are_the_whole(tmp_path):
    text = "@pytest.mark.parametrize('number', range(120))\ndef test_b(number):\n    pass\n"
    parts = [passed(run(tmp_path, "", text, GRAFT_SHARE=f"{turn}/3")) for turn in (1, 2, 3)]
    assert sum(parts) == 120
    assert min(parts) > 20
    # Two parts of what one mode alone runs, whichever pass asks.
    shared = {"GRAFT_SHARE": "1/3", "GRAFT_HOST_MODE": "async"}
    assert passed(run(tmp_path, "", text, **shared)) == parts[0] + parts[1]


def test_what_runs_in_every_run_is_in_each_part(tmp_path):
    text = "@pytest.mark.every_run\n@pytest.mark.parametrize('number', range(7))\ndef test_b(number):\n    pass\n"
    for turn in (1, 2, 3):
        assert passed(run(tmp_path, "", text, GRAFT_SHARE=f"{turn}/3")) == 7
