"""The run of a deployed model in a system of its own: what it must not have, what is copied, and the page."""

from pathlib import Path

import numpy
import pytest

import deployed_system

pytestmark = pytest.mark.every_run


@pytest.mark.parametrize(
    "name",
    [
        "usr/bin/python3",
        "usr/bin/python3.11",
        "usr/bin/gcc",
        "lib/libtorch_cpu.so",
        "usr/lib/libpython3.11.so.1.0",
    ],
)
def test_a_system_with_python_torch_or_a_compiler_is_not_bare(tmp_path: Path, name: str) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    for folder in ("lib", "proc", "usr/lib"):
        (tmp_path / folder).mkdir()
    for plain in ("usr/bin/perl", "lib/libgraft.so", "usr/bin/pythonish", "usr/bin/gccgo"):
        (tmp_path / plain).touch()
    assert deployed_system.foreign_files(tmp_path) == []
    (tmp_path / name).touch()
    assert deployed_system.foreign_files(tmp_path) == [name]


def test_the_executable_part_is_copied_and_measured(tmp_path: Path) -> None:
    package = tmp_path / "package"
    for name in ("bin/graft-infer", "lib/libgraft.so", "drivers/graft_host.so", "lib/more.so"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes(b"12345")
    with pytest.raises(SystemExit, match="has no drivers/graft_pack"):
        deployed_system.copy_part(package, tmp_path / "part")
    (package / "drivers/graft_pack_v3.so").write_bytes(b"123")
    sizes = deployed_system.copy_part(package, tmp_path / "part")
    assert list(sizes.values()) == [5, 5, 5, 3]
    assert not (tmp_path / "part/lib/more.so").exists()
    assert (tmp_path / "part/drivers/graft_pack_v3.so").read_bytes() == b"123"


def test_the_page_gets_the_sizes() -> None:
    page = deployed_system.PAGE.read_text()
    text = deployed_system.publish(page, {"lib/a.so": 1_240_000, "lib/b.so": 360_000}, "trixie")
    assert "| `lib/a.so` | 1.2 |\n| `lib/b.so` | 0.4 |\n| together | 1.6 |" in text
    assert "tools/deployed_system.py trixie" in text
    assert deployed_system.publish(text, {"lib/a.so": 1_240_000}, "trixie") != text
    with pytest.raises(SystemExit, match="no place for sizes"):
        deployed_system.publish("", {}, "trixie")


def test_results_that_differ_end_the_run(tmp_path: Path) -> None:
    numpy.save(tmp_path / "wanted.npy", numpy.ones(3, "float32"))
    numpy.save(tmp_path / "out_result.npy", numpy.ones(3, "float32"))
    assert deployed_system.compare(tmp_path) == 0
    numpy.save(tmp_path / "out_result.npy", numpy.full(3, 1.001, "float32"))
    with pytest.raises(SystemExit, match="the result differs"):
        deployed_system.compare(tmp_path)


def test_a_command_that_fails_says_which_and_why() -> None:
    with pytest.raises(SystemExit, match="ls /nowhere: exit status 2"):
        deployed_system.run("ls", "/nowhere")
