"""Every Python block of the README and of docs/ runs."""

import os
import re
import subprocess
import sys

import pytest

from sandbox import ROOT

pytestmark = pytest.mark.one_mode

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    if page.exists()
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    )
]


def test_there_are_examples():
    assert BLOCKS, "the README has a ten-line example"


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path,
        env={**os.environ, "GRAFT_HOST_DEVICES": "2", "PYTHONPATH": str(ROOT / "examples")},
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
