# tests/python/attaching/test_version.py: the version stands in one place, and the installed packages fit.
from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest
import tomllib

import torch_graft
from sandbox import ROOT

pytestmark = pytest.mark.one_mode


def test_all_agree(module: Any) -> None:
    from torch_graft import _C

    [written] = re.findall(
        r"^project\(graft VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M
    )
    assert written == version("torch-graft") == torch_graft.__version__ == _C.version()


@pytest.mark.every_run
def test_the_wheel_reads_it_from_cmake() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in settings["project"]["dynamic"]
    assert "version" not in settings["project"]
    providers = settings["tool"]["dynamic-metadata"]
    [provider] = [one for one in providers if one.get("field") == "version"]
    [found] = re.findall(provider["regex"], (ROOT / provider["input"]).read_text())
    assert found == torch_graft.__version__


def test_an_unknown_attribute_is_still_an_error() -> None:
    assert not hasattr(torch_graft, "__versions__")


def test_every_requirement_is_installed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, timeout=100
    )
    assert (ran.returncode, ran.stdout) == (0, "No broken requirements found.\n"), ran.stdout
