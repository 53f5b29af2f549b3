# sdk/graft_sdk/__init__.py: where the package's files are.
"""What a vendor needs to build and check a driver. Needs no torch."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

__all__ = ["cmake_dir", "include_dir", "root"]
__version__ = version("graft-sdk")


def root() -> str:
    """The folder for CMake's graft_ROOT."""
    return str(Path(__file__).resolve().parent)


def include_dir() -> str:
    """The folder of graft/driver.h, for -I."""
    return str(Path(root()) / "include")


def cmake_dir() -> str:
    """The folder of graft-config.cmake, for CMake's graft_DIR."""
    return str(Path(root()) / "lib" / "cmake" / "graft")
