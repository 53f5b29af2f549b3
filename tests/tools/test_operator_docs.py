# tests/tools/test_operator_docs.py: the page about the operators says what report, dispatcher and op table say.
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "operator_docs.py"


def test_page_is_fresh() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_entry_and_row_is_listed() -> None:
    page = (ROOT / "docs/generated/operators.md").read_text()
    assert page.count("| native |") > 200
    assert "| `nn.functional.gelu` | native |" in page
    assert "| `add` | 2 | 1 | 1 |" in page[page.index("## The op table") :]
