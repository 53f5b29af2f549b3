# tests/test_conformance.py: a part of torch-conformance, in seconds; CI runs all of it.
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_shard_is_green(tmp_path: Path) -> None:
    """CONFORMANCE_SHARD: another part, such as 2/60, or more of it, such as 1/4."""
    shard = os.environ.get("CONFORMANCE_SHARD", "1/200")
    choice = ["--dtypes", "float32", "--aspects", "forward,backward", "--shard", shard]
    files = ["--expectations", str(ROOT / "expectations.toml"), "--out", str(tmp_path)]
    command = [sys.executable, "-m", "torch_conformance", "--device", "acme", *choice, *files]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "report.html").exists()
