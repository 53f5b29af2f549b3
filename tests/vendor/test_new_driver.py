"""tests/vendor/test_new_driver.py: what new-driver writes builds, installs and passes at once, in each flavour."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import driver_page
import torch_graft
from torch_graft.cli import new_driver

ROOT = Path(__file__).resolve().parents[2]
FLAVOURS = list(itertools.product(new_driver.KERNELS, new_driver.LANGUAGES))
pytestmark = pytest.mark.one_mode


@dataclass
class Desk:
    """A vendor's folder, and an environment in which pip installs for this folder alone."""

    folder: Path
    variables: dict[str, str]

    def run(self, *command: str, **variables: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables | variables, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    # The SDK as its wheel lays it out (test_sdk.py builds that); the checker is the one of torch-graft.
    sdk = tmp_path / "sdk"
    (sdk / "lib/cmake/graft").mkdir(parents=True)
    for name in ("graft-config.cmake", "graft_names.map"):
        shutil.copy(ROOT / "sdk" / name, sdk / "lib/cmake/graft")
    (sdk / "include").symlink_to(ROOT / "include")
    tools = Path(torch_graft.__file__).parent / "bin"
    site, folder = tmp_path / "site", tmp_path / "desk"
    folder.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GRAFT_", "PYTEST_", "ZETA_"))}
    return Desk(folder, kept | {
        "PATH": f"{Path(sys.executable).parent}:{tools}:{kept['PATH']}",
        "PYTHONPATH": str(site),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "graft_ROOT": str(sdk),
        # pip takes what is installed here, and installs nothing else.
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_TARGET": str(site),
        "PIP_UPGRADE": "1",
        "PIP_QUIET": "1",
        "SKBUILD_CMAKE_DEFINE": "CMAKE_C_FLAGS_RELEASE=-O1;CMAKE_CXX_FLAGS_RELEASE=-O1",
        "CFLAGS": "-Werror",
        "CXXFLAGS": "-Werror",
    })  # fmt: skip


def write(desk: Desk, kernels: str, language: str, *more: str) -> str:
    command = [sys.executable, "-m", "torch_graft", "new-driver", "zeta"]
    return desk.run(*command, "--kernels", kernels, "--language", language, *more)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kernels", "language"), FLAVOURS)
def test_a_flavour_is_built_installed_and_passes(desk: Desk, kernels: str, language: str) -> None:
    said = write(desk, kernels, language)
    assert "pip install ./torch-zeta" in said
    desk.run("pip", "install", "./torch-zeta")
    code = (
        "import torch; print((torch.ones(3, device='zeta') + 1).cpu(), torch.zeta.device_count())"
    )
    assert desk.run("python", "-c", code).strip() == "tensor([2., 2., 2.]) 1"
    (driver,) = (desk.folder.parent / "site").rglob("graft_zeta.so")
    names = desk.run("nm", "-D", "--defined-only", "--format=just-symbols", str(driver)).split()
    assert names == ["graft_driver_query"]
    # Each flavour has another part of the suite.
    shard = f"{1 + FLAVOURS.index((kernels, language))}/400"
    pytest_ = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "torch-zeta"]
    report = desk.run(*pytest_, CONFORMANCE_SHARD=shard)
    assert re.search(r"^\d+ passed", report, re.MULTILINE), report
    assert "skipped" not in report, report


def test_the_checker_of_a_project_finds_a_fault(desk: Desk) -> None:
    write(desk, "none", "c")
    path = desk.folder / "torch-zeta/driver/event.c"
    text = path.read_text()
    planted = text.replace("chip_await(stream->queue, fence)", "((void)stream, CHIP_OK)")
    assert planted != text
    path.write_text(planted)
    desk.run("pip", "install", "./torch-zeta")
    test = [
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "torch-zeta/tests/test_driver.py",
    ]
    with pytest.raises(AssertionError, match="orders two streams: a stream ran on"):
        desk.run(*test)


@pytest.mark.every_run
@pytest.mark.parametrize(("kernels", "language"), FLAVOURS)
def test_a_project_has_the_vendors_name_alone(tmp_path: Path, kernels: str, language: str) -> None:
    folder = new_driver.write("my_chip", kernels, language, tmp_path / "made")
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 20
    for path in written:
        text = path.read_text()
        name = path.relative_to(folder)
        assert "acme" not in f"{name} {text}".lower(), name
        if path.suffix in (".c", ".h", ".cpp", ".py", ".toml", ".yml"):
            assert text.splitlines()[0].split()[1].rstrip(":") == str(name)
    assert "my_chip:driver" in (folder / "pyproject.toml").read_text()
    assert 'name = "torch-my-chip"' in (folder / "pyproject.toml").read_text()
    assert (folder / "python/torch_my_chip/__init__.py").exists()


@pytest.mark.every_run
def test_no_layer_of_the_template_replaces_a_file_of_another() -> None:
    for kernels, language in FLAVOURS:
        how = "compiled" if kernels == "c" else kernels
        tongue = "in_cpp" if language == "c++" else "in_c"
        layers = ("every", tongue, how, f"{how}_{tongue}")
        counted = sum(
            path.is_file() and "__pycache__" not in path.parts
            for layer in layers
            for path in (new_driver.TEMPLATE / layer).rglob("*")
        )
        assert len(new_driver.files(kernels, language)) == counted


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is empty"),
        ("Zeta", "letters"),
        ("a-b", "letters"),
        ("../zeta", "letters"),
        ("xpu", "PyTorch has a device type 'xpu' already"),
        ("nn", "PyTorch already has torch.nn"),
        ("for", "keyword"),
        ("graft", "Graft itself uses it"),
        ("host", "Graft itself uses it"),
    ],
)
def test_a_name_that_no_device_can_have_is_refused(tmp_path, capsys, name, reason) -> None:
    assert new_driver.run(name, "none", "c", tmp_path / "made") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"new-driver: '{name}' cannot be the name of a device: ")
    assert reason in said
    assert not (tmp_path / "made").exists()


def test_what_is_there_is_never_overwritten(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    for taken in (tmp_path, tmp_path / "file"):
        assert new_driver.run("zeta", "none", "c", taken) == 1
        assert "is not an empty folder. Nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert new_driver.run("zeta", "none", "c", tmp_path / "empty") == 0


@pytest.mark.seldom
@pytest.mark.timeout(900)
def test_the_page_works_from_top_to_bottom(desk: Desk) -> None:
    blocks = driver_page.blocks()
    assert len(blocks) > 15
    for block in blocks:
        print(driver_page.perform(desk.run, desk.folder, block))
