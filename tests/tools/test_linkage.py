# tests/tools/test_linkage.py: neither the core nor a driver links torch or Python.
from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

FOREIGN = re.compile(r"lib(torch|c10|python)")


def libraries() -> list[Path]:
    spec = find_spec("torch_graft")
    assert spec is not None, "torch_graft is not installed: run make setup"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    return [package / "lib" / "libgraft.so", *sorted((package / "drivers").glob("*.so"))]


def needed(library: Path) -> list[str]:
    dynamic = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True)
    assert dynamic.returncode == 0, dynamic.stderr
    return re.findall(r"NEEDED.*\[(.+)\]", dynamic.stdout)


def test_core_and_drivers_are_free_of_torch_and_python():
    found = libraries()
    assert len(found) >= 3, f"expected the core, host and null, found {found}"
    linked = {lib.name: [name for name in needed(lib) if FOREIGN.match(name)] for lib in found}
    assert not any(linked.values()), linked


@pytest.mark.parametrize("name", ["libtorch_cpu.so", "libc10.so", "libpython3.11.so.1.0"])
def test_pattern_knows_what_is_foreign(name):
    assert FOREIGN.match(name)
