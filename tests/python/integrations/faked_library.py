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
    facts = folder / f"safetensors-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: safetensors\nVersion: {version}\n"
    )
    return str(folder)
