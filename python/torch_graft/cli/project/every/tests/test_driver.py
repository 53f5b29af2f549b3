# tests/test_driver.py: the driver keeps the rules of graft/driver.h.
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import torch_acme


def checker() -> str:
    """graft-driver-check: of graft-sdk on the PATH, or the one that torch-graft brings."""
    import torch_graft

    own = Path(torch_graft.__file__).parent / "bin" / "graft-driver-check"
    return shutil.which("graft-driver-check") or str(own)


def test_the_checker_passes() -> None:
    found = torch_acme.driver()
    assert found is not None
    command = [checker(), "--late-error", "ACME_FAULT=copy:2", found[0]]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
