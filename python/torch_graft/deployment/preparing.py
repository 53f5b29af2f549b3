# python/torch_graft/deployment/preparing.py: compiled kernels inside of a deployed model's file.
"""Starts graft-infer --prepare, whose process has the kernels of that model and no others."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

from torch_graft import _C

PROGRAM = Path(__file__).absolute().parents[1] / "bin" / "graft-infer"
_log = logging.getLogger("torch_graft.deployment")


def prepare(path: str, index: int) -> None:
    """Keeps the kernels that the device compiles in the file. Where that fails the file stays as it
    is, whoever opens it compiles them, and a warning is logged."""
    properties = _C.device_properties(index)
    environment = os.environ | {
        "GRAFT_DRIVER_PATH": dict(_C.drivers())[properties.driver],
        "GRAFT_DEVICES": f"{properties.driver}:{properties.ordinal}",
    }
    try:
        ran = subprocess.run(
            [PROGRAM, path, "--prepare"], env=environment, capture_output=True, text=True
        )
        why = "" if ran.returncode == 0 else ran.stderr.strip()
    except OSError as error:
        why = str(error)
    if why:
        _log.warning("%s is written without compiled kernels: %s", path, why)
