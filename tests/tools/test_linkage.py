# tests/tools/test_linkage.py: what the package's libraries need of a system, and that only the binding needs torch.
from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

# What manylinux_2_34 allows (tools/wheels.py): glibc 2.34 and the C++ library of GCC 11.
NEWEST = {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0"}
FOREIGN = re.compile(r"lib(torch|c10|python)")

pytestmark = pytest.mark.every_run


def package() -> Path:
    spec = find_spec("torch_graft")
    assert spec is not None, "torch_graft is not installed: run make setup"
    assert spec.origin is not None
    return Path(spec.origin).parent


def libraries() -> list[Path]:
    return [package() / "lib" / "libgraft.so", *sorted((package() / "drivers").glob("*.so"))]


def symbol_versions(library: Path) -> set[tuple[str, str]]:
    """Library of a needed symbol and its version, as ("GLIBC", "2.34")."""
    printed = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    return set(re.findall(r"\*UND\*.*\((GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)", printed.stdout))


def order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def needed(library: Path) -> list[str]:
    dynamic = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True)
    assert dynamic.returncode == 0, dynamic.stderr
    return re.findall(r"NEEDED.*\[(.+)\]", dynamic.stdout)


def exported(library: Path) -> list[str]:
    command = ["nm", "-D", "--defined-only", "--format=just-symbols", str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


# A name that two libraries export is the first one's in both, if a program links one of them: a driver that brings
# its C++ library along would call that of libgraft.so.
STANDARD = re.compile(r"_Z(T[ISTV]|GV|Z|GVZ)?(N?K?)S[a-z]")


def test_no_library_exports_the_cpp_library():
    found = {path.name: exported(path) for path in libraries()}
    assert "graft_model_open" in found["libgraft.so"]
    for name in ("graft_host.so", "graft_null.so", "graft_opencl.so", "graft_veda.so"):
        assert found[name] == ["graft_driver_query"]
    standard = {
        name: [one for one in names if STANDARD.match(one)] for name, names in found.items()
    }
    assert {name: names for name, names in standard.items() if names} == {}


def test_core_and_drivers_are_free_of_torch_and_python():
    found = libraries()
    assert len(found) >= 3, f"expected the core, host and null, found {found}"
    linked = {lib.name: [name for name in needed(lib) if FOREIGN.match(name)] for lib in found}
    assert not any(linked.values()), linked


@pytest.mark.parametrize("name", ["libtorch_cpu.so", "libc10.so", "libpython3.11.so.1.0"])
def test_pattern_knows_what_is_foreign(name):
    assert FOREIGN.match(name)


def test_symbols_are_those_of_the_wheels_tag():
    every = [path for path in sorted(package().rglob("*")) if path.suffix == ".so"]
    assert any("extensions" in path.parts for path in every)
    found = {path.name: symbol_versions(path) for path in every}
    assert set(NEWEST) <= {name for versions in found.values() for name, _ in versions}
    newer = [
        f"{name} needs {kind}_{version}"
        for name, versions in found.items()
        for kind, version in sorted(versions)
        if order(version) > order(NEWEST[kind])
    ]
    assert newer == []
