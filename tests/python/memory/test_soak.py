"""A short soak in every run; `python tests/python/memory/soak.py` is the long one."""

import subprocess
import sys
from pathlib import Path


def test_short_soak(device):
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("soak.py")), "--device", device,
         "--steps", "3000"], capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
