# python/torch_graft/toolchain.py: offers the host driver a C compiler that came as a package.
"""`pip install torch-graft[compiler]` brings zig, which compiles C. The driver knows no Python: it
reads the path from the environment, and takes it only where the system has no compiler."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

DRIVER = "host"  # whose compiler it is
VARIABLE = "GRAFT_ZIG"
PACKAGE = "ziglang"


def offer() -> None:
    """Names the package's zig to drivers that are loaded from now on. What the user set holds."""
    if VARIABLE not in os.environ and (path := _packaged()) is not None:
        os.environ[VARIABLE] = path


def _packaged() -> str | None:
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder).absolute() / "zig"
        if os.access(path, os.X_OK):
            return str(path)
    return None
