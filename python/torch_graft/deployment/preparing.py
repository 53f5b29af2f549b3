# python/torch_graft/deployment/preparing.py: compiled kernels inside of a deployed model's file.
"""Starts graft-infer --prepare, whose process has the kernels of that model and no others."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from torch_graft import _C

PROGRAM = Path(__file__).absolute().parents[1] / "bin" / "graft-infer"
_log = logging.getLogger("torch_graft.deployment")


def check_processors(processors: Sequence[str], index: int) -> None:
    """Raises TypeError and ValueError for what is no list of levels that the device compiles for."""
    if isinstance(processors, str) or not isinstance(processors, Sequence):
        raise TypeError(
            f"processors must be a list of levels, got {processors!r}: write ({processors!r},) for one"
        )
    known = _C.processor_levels()
    for one in processors:
        if one not in known:
            raise ValueError(f"processors has {one!r}, expected some of {', '.join(known)}")
    driver = _C.device_properties(index).driver
    if processors and driver != "host":
        raise ValueError(
            f"processors are those of the host driver's devices, and the model is on one of "
            f"{driver!r}: leave them out, or move the model to a host device"
        )


def prepare(path: str, index: int, processors: Sequence[str]) -> None:
    """Keeps the kernels that the device compiles in the file, for itself or for levels of
    processors. Where that fails the file stays as it is, and whoever opens it compiles them: a
    warning is logged, or, for processors, RuntimeError raised."""
    properties = _C.device_properties(index)
    environment = os.environ | {
        "GRAFT_DRIVER_PATH": dict(_C.drivers())[properties.driver],
        "GRAFT_DEVICES": f"{properties.driver}:{properties.ordinal}",
    }
    try:
        ran = subprocess.run(
            [PROGRAM, path, "--prepare", *chain(*(("--processor", one) for one in processors))],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        why = "" if ran.returncode == 0 else ran.stderr.strip()
    except OSError as error:
        why = str(error)
    if why and processors:
        raise RuntimeError(f"{path} is written without kernels for {', '.join(processors)}: {why}")
    if why:
        _log.warning("%s is written without compiled kernels: %s", path, why)
