# cmake/torch_requirement.py: tells pip which torch the wheel being built works with.
"""A provider of metadata for scikit-build-core (pyproject.toml). A wheel works with the minor versions
that it has an extension for: those of the folders in GRAFT_TORCHES, as cmake/torch_wheel.cmake reads
them, or the torch of this environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

Minor = tuple[int, int]


def _minor(text: str) -> Minor:
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is no version of torch such as 2.15.0")
    return int(match[1]), int(match[2])


def _version_of(folder: str) -> str:
    text = (Path(folder) / "version.py").read_text()
    match = re.search(r"^__version__ = ['\"](.+)['\"]", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{folder}/version.py states no __version__")
    return match[1]


def minors() -> list[Minor]:
    """The minor versions that the build makes extensions for, oldest first."""
    folders = [folder for folder in os.environ.get("GRAFT_TORCHES", "").split(":") if folder]
    found = [_version_of(folder) for folder in folders] or [version("torch")]
    return sorted({_minor(text) for text in found})


def requirement(served: list[Minor]) -> str:
    """The narrowest requirement that admits each release of these minor versions and no other."""
    (first, *_), (*_, last) = served, served
    between = [(first[0], minor) for minor in range(first[1], last[1] + 1)]
    if first[0] != last[0]:
        raise ValueError(f"a wheel for torch {first[0]} and {last[0]} at once is not planned")
    without = "".join(f",!={a}.{b}.*" for a, b in between if (a, b) not in served)
    return f"torch>={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}{without}"


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    return {"dependencies": [requirement(minors())]}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:
    return {"dependencies": True}
