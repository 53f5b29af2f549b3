"""A library of the unusual and the faulty drivers, for tests of the trace layer under torch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from torch_graft import drivers

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.fixture(scope="session")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the unusual and the faulty drivers."""
    sources = sorted(path for path in HERE.glob("*.cpp") if not path.stem.endswith("_test"))
    library = tmp_path_factory.mktemp("variants") / "graft_variants.so"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}",
               *map(str, sources), "-o", str(library), "-ldl"]  # fmt: skip
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="session")
def variant(variants: Path) -> Callable[[str], dict[str, str]]:
    """The variables by which a process has the variant of that name, in front of the host driver."""

    def settings(name: str) -> dict[str, str]:
        return {
            "GRAFT_DRIVER_PATH": str(variants), "GRAFT_LIMITED_DRIVER": str(drivers.host()),
            "GRAFT_VARIANT": name, "GRAFT_DEVICES": name,
        }  # fmt: skip

    return settings
