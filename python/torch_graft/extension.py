# python/torch_graft/extension.py: the extension module torch_graft._C for the torch that is installed.
"""A wheel holds one extension for each minor version of torch that it serves, in
extensions/<minor>/, because torch's C++ interface changes with each."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import torch_graft

_FOLDER = Path(__file__).with_name("extensions")


def minors() -> list[str]:
    """The minor versions of torch that this installation serves, oldest first."""
    found = [folder.name for folder in _FOLDER.iterdir()] if _FOLDER.is_dir() else []
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def load() -> ModuleType:
    """torch_graft._C for the installed torch. Raises ImportError if there is none for it."""
    import torch

    minor = ".".join(torch.__version__.split(".")[:2])
    folder = _FOLDER / minor
    if not folder.is_dir():
        raise ImportError(_refusal(torch.__version__, minor))
    if str(folder) not in torch_graft.__path__:
        torch_graft.__path__.append(str(folder))
    return importlib.import_module("torch_graft._C")


def _refusal(version: str, minor: str) -> str:
    served = minors()
    if not served:
        return f"torch {version} is installed, but this torch-graft has no extension: install torch-graft again"
    return (
        f"torch {version} is installed, but this torch-graft works with torch {', '.join(served)}. "
        f"Install one of these (pip install 'torch=={served[-1]}.*'), or a torch-graft for torch {minor}"
    )
