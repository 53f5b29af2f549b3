"""Writes a package that calls itself safetensors, of any version, to a folder for PYTHONPATH."""

from __future__ import annotations

from pathlib import Path

OPENER = """
def safe_open(filename, framework, device="cpu", **more):
    return device
"""


def write(folder: Path, version: str) -> str:
    """Returns the folder, as text."""
    package = folder / "safetensors"
    package.mkdir()
    (package / "__init__.py").write_text(OPENER)
    (package / "torch.py").write_text("from safetensors import safe_open\n")
    return state(folder, version, "safetensors")


def state(folder: Path, version: str, *distributions: str) -> str:
    """Says that the distributions are installed there in that version. Returns the folder, as text."""
    for name in distributions:
        facts = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        facts.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (facts / "METADATA").write_text(text)
    return str(folder)
