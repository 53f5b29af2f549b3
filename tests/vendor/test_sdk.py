"""tests/vendor/test_sdk.py: the wheel graft-sdk builds and checks a driver where there is no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torch_graft

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.one_mode, pytest.mark.seldom]
Sdk = Callable[..., str]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C CXX)
find_package(graft REQUIRED)
add_library(small MODULE {root}/tests/drivers/tiny.c)
file(GLOB sources {root}/tests/vendor/fixed_function/*.cpp)
add_library(chip MODULE ${{sources}})
target_compile_features(chip PRIVATE cxx_std_20)
foreach(driver small chip)
  target_link_libraries(${{driver}} PRIVATE graft::driver)
  set_target_properties(${{driver}} PROPERTIES PREFIX "" SUFFIX .so)
endforeach()
"""


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Sdk:
    """Runs a command in an environment that holds the wheel of the tree's SDK and nothing else."""
    folder = tmp_path_factory.mktemp("sdk")
    pip = [sys.executable, "-m", "pip"]
    made = [
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "-w",
        str(folder),
        str(ROOT / "sdk"),
    ]
    run(*pip, *made, f"-Cbuild-dir={folder}/build")
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    [wheel] = folder.glob("graft_sdk-*-py3-none-*.whl")
    inside = str(environment / "bin/python")
    run(*pip, "--python", inside, "install", "-q", "--no-index", str(wheel))
    path = {"PATH": f"{environment}/bin:{os.environ['PATH']}", "PYTHONPATH": ""}
    return lambda *command: run(*command, **path)


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_drivers_are_built_and_checked_without_torch(sdk: Sdk, tmp_path: Path) -> None:
    assert sdk("python", "-c", "import importlib.util as u; print(u.find_spec('torch'))") == "None"
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
    root = sdk("python", "-m", "graft_sdk", "--root")
    sdk(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        str(tmp_path),
        "-B",
        str(tmp_path / "b"),
        f"-Dgraft_ROOT={root}",
    )
    sdk("cmake", "--build", str(tmp_path / "b"))
    for name in ("small", "chip"):
        report = sdk("graft-driver-check", str(tmp_path / f"b/{name}.so"))
        assert " passed, 0 failed" in report, report


def test_its_headers_are_those_of_torch_graft(sdk: Sdk) -> None:
    """But for those of programs that run models: they link libgraft, which the SDK lacks."""
    own = Path(sdk("python", "-m", "graft_sdk", "--include-dir")) / "graft"
    installed = Path(torch_graft.__file__).parent / "include/graft"
    for other in (installed, ROOT / "include/graft"):
        headers = contents(other)
        of_programs = {name for name in headers if name.startswith("deploy")}
        assert {"deploy.h", "deploy.hpp"} <= of_programs
        assert contents(own) == {name: headers[name] for name in headers.keys() - of_programs}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_pkg_config_gives_the_headers(sdk: Sdk) -> None:
    folder = Path(sdk("python", "-m", "graft_sdk", "--root"))
    text = (folder / "lib/pkgconfig/graft.pc").read_text()
    assert "prefix=${pcfiledir}/../..\nincludedir=${prefix}/include" in text
    assert (
        f"Version: {sdk('python', '-c', 'import graft_sdk; print(graft_sdk.__version__)')}" in text
    )
    cmake_dir = Path(sdk("python", "-m", "graft_sdk", "--cmake-dir"))
    assert (cmake_dir / "graft-config.cmake").exists()
