# tests/tools/test_compile_dialects.py: kernels are dumped in every dialect, and bad ones are named.
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "compile_dialects.py"
USE = """
import torch
x = torch.arange(6.0, device="graft").half()
print((x.sin() + torch.softmax(x, 0)).sum().item(), torch.randperm(9, device="graft").sum().item())
"""


def compile_(folder, *options, **more):
    command = [sys.executable, str(TOOL), str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    environment = {**os.environ, "GRAFT_DUMP_KERNELS": str(folder)}
    subprocess.run([sys.executable, "-c", USE], env=environment, check=True, timeout=250)
    return folder


def test_every_kernel_is_written_in_every_dialect(dumped):
    names = {d.name: sorted(f.name for f in d.iterdir()) for d in dumped.iterdir()}
    assert set(names) == {"c", "opencl-c", "cuda-c"}
    assert names["c"] == names["opencl-c"] == names["cuda-c"]
    assert "random_permutation.c" in names["c"]
    assert any("sin_" in n for n in names["c"])
    assert "__global__" in (dumped / "cuda-c" / "random_permutation.c").read_text()


def test_they_compile(dumped):
    done = compile_(dumped)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cuda-c: " in done.stdout
    assert "opencl-c: " in done.stdout


def test_the_program_that_does_not_compile_is_named(dumped, tmp_path):
    for dialect in ("cuda-c", "opencl-c"):
        shutil.copytree(dumped / dialect, tmp_path / dialect)
        (tmp_path / dialect / "broken.c").write_text("void f(int x) { return y; }\n")
    done = compile_(tmp_path)
    assert done.returncode == 1
    assert "broken.c" in done.stderr
    assert "random_permutation.c" not in done.stderr


def test_c_compiles_for_a_vector_engine(dumped):
    done = compile_(dumped, "--ve")
    assert done.returncode == 0, done.stdout + done.stderr
    count = len(list((dumped / "c").iterdir()))
    assert f"c: {count} of {count} programs compile with clang-19 for VE" in done.stdout


def test_what_a_vector_engine_cannot_link_is_named(dumped, tmp_path):
    shutil.copytree(dumped / "c", tmp_path / "c")
    (tmp_path / "c" / "broken.c").write_text("void f(int x) { return y; }\n")
    (tmp_path / "c" / "strange.c").write_text("int g(int); int f(int x) { return g(x); }\n")
    done = compile_(tmp_path, "--ve")
    assert done.returncode == 1
    assert "broken.c" in done.stderr
    assert "kernel_symbols.txt: g" in done.stderr
    assert "strange.c" in done.stderr
    assert "random_permutation.c" not in done.stderr


def test_the_compiler_for_a_vector_engine_may_not_be_missing(dumped):
    done = compile_(dumped, "--ve", env={**os.environ, "PATH": "/nowhere"})
    assert done.returncode == 2
    assert "no clang-19 and no llvm-nm-19 on this machine: run tools/setup" in done.stderr


def test_an_empty_folder_says_what_to_do(tmp_path):
    done = compile_(tmp_path)
    assert done.returncode == 2
    assert "GRAFT_DUMP_KERNELS" in done.stderr


def test_a_folder_that_cannot_be_made_is_reported_once():
    environment = {**os.environ, "GRAFT_DUMP_KERNELS": "/proc/none"}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr.count("cannot write kernels under /proc/none") == 1
