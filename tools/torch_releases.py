# tools/torch_releases.py: the releases of torch that Graft is built and tested with (pyproject.toml).
"""Reads the table [tool.graft.torch] and gives the parts of a release that a build needs."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
# Of a wheel, what an extension is compiled from and linked with.
BUILT_AGAINST = ("torch/include/", "torch/version.py", "torchgen/")
LINKED = {f"torch/lib/lib{name}.so" for name in ("torch", "torch_cpu", "torch_python", "c10")}


def order(version: str) -> list[int]:
    """A key to sort versions by, such as 2.15.0 or 3.11."""
    return [int(part) for part in version.split(".")]


def releases() -> dict[str, list[str]]:
    """Release -> the Pythons that have wheels for it, oldest release first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, list[str]] = tomllib.load(file)["tool"]["graft"]["torch"]
    return {release: table[release] for release in sorted(table, key=order)}


def pythons() -> list[str]:
    """The Pythons that have wheels for any release, oldest first."""
    every = {python for row in releases().values() for python in row}
    return sorted(every, key=order)


def minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def unpacked(release: str, pip: list[str]) -> Path:
    """The folder of the package torch of this release, with what a build needs alone. Headers and
    libraries are the same for each Python, and for wheels with and without CUDA."""
    folder = BUILD / "torch" / release
    done = folder / "complete"
    if not done.exists():
        downloads = folder / "download"
        command = [*pip, "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(downloads), f"torch=={release}"], check=True)
        (wheel,) = downloads.glob("torch-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(BUILT_AGAINST) or name in LINKED:
                    archive.extract(name, folder)
        wheel.unlink()
        done.touch()
    return folder / "torch"
