"""Packages of made-up vendors: a driver in C with a name and a number of devices, and entry points."""

from __future__ import annotations

from pathlib import Path

from sandbox import ROOT, build_c


def build_driver(folder: Path, name: str, simulated: bool = False) -> str:
    """A library whose driver has as many devices as <NAME>_DEVICES says, one if nothing does.

    It prints "<name>: asked for its table" at each call of graft_driver_query.
    """
    text = (ROOT / "tests/drivers/tiny.c").read_text()
    for old, new in {
        'GRAFT_PRELUDE("tiny")': f'GRAFT_PRELUDE("{name}")',
        "#include <stdlib.h>": "#include <stdio.h>\n#include <stdlib.h>",
        "*out_count = 1;": f'const char* count = getenv("{name.upper()}_DEVICES");\n'
        "  *out_count = count == NULL ? 1 : (uint32_t)atoi(count);",
        "if (ordinal != 0) return GRAFT_NOT_FOUND;": "(void)ordinal;",
        "mine.features = GRAFT_FEATURE_SIMULATED;": "mine.features = GRAFT_FEATURE_SIMULATED;"
        if simulated
        else "mine.features = 0;",
        "  return graft_driver_fill(": f'  fprintf(stderr, "{name}: asked for its table\\n");\n'
        "  return graft_driver_fill(",
        "Tiny device": f"{name} device",
    }.items():
        assert old in text
        text = text.replace(old, new)
    return build_c(folder / f"graft_{name}.so", text)


def install(
    folder: Path, package: str, *, driver: str | None = None, device: str | None = None,
    adds: dict[str, str] | None = None, code: str = "",
) -> str:  # fmt: skip
    """A package that offers a driver under a device name, and adds attributes (name -> what is
    imported from the package's module, which has the code). The folder, for PYTHONPATH."""
    module = "vendor_" + package.replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(
        f"def driver():\n    return {driver!r}, {device!r}\n{code}\n"
    )
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    entries = f"[graft.drivers]\n{package} = {module}:driver\n" if driver else ""
    if adds:
        entries += "[graft.device_module]\n"
        entries += "".join(f"{name} = {module}{what}\n" for name, what in adds.items())
    (info / "entry_points.txt").write_text(entries)
    return str(folder)
