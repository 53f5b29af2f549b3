# tests/python/opencl/test_cache.py: compiled kernels outlive their process, on PoCL.
"""Each compilation leaves a file: Graft's cache has a blob, PoCL's has machine code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import ROOT

pytestmark = pytest.mark.one_mode

STEP = """
torch.manual_seed(0)
x = torch.randn(64, 33, device=D, requires_grad=True)
y = torch.nn.functional.gelu(x).softmax(1).sum(0).clamp(0.1, 3)
(y * y).sum().backward()
print(json.dumps(x.grad.cpu().sum(1).tolist()))
"""


@pytest.fixture
def caches(tmp_path):
    """The environment of a machine that has compiled nothing yet."""
    folders = {"GRAFT_CACHE_DIR": tmp_path / "graft", "POCL_CACHE_DIR": tmp_path / "pocl"}
    for folder in folders.values():
        folder.mkdir()
    places = {name: str(folder) for name, folder in folders.items()}
    return {"GRAFT_DEVICES": "opencl", "OCL_ICD_VENDORS": None, "GRAFT_PROGRESS": "0", **places}


def compiled(caches):
    """The blobs and the pieces of machine code; what is compiled again is another file."""
    blobs = [path for path in Path(caches["GRAFT_CACHE_DIR"]).rglob("*") if path.is_file()]
    code = list(Path(caches["POCL_CACHE_DIR"]).rglob("*.so"))
    return [{path: path.stat().st_ino for path in paths} for paths in (blobs, code)]


def test_a_second_start_compiles_nothing(python, caches):
    first = python(STEP, **caches).value()
    blobs, code = compiled(caches)
    assert len(blobs) >= 5
    assert len(code) >= len(blobs)
    assert python(STEP, **caches).value() == first
    assert compiled(caches) == [blobs, code]
    python("torch.ones(3, device=D).erfinv().cpu()", **caches).good()
    now, machine_code = compiled(caches)
    assert len(now) == len(blobs) + 1
    assert len(machine_code) > len(code)


def test_processes_that_compile_the_same_agree(python, caches):
    merged = {**os.environ, **caches}
    environment = {name: value for name, value in merged.items() if value is not None}
    script = "import json, torch\nD = 'graft'\n" + STEP
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, cwd=ROOT / "tests",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    ended = [process.communicate(timeout=200) for process in started]
    assert [process.returncode for process in started] == [0, 0], ended
    assert ended[0][0] == ended[1][0]
    before = compiled(caches)
    assert python(STEP, **caches).good().out == ended[0][0]
    assert compiled(caches) == before
