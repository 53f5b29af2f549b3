# tests/python/opencl/test_tuning.py: the tuner measures, keeps what it found, and bad files do no harm.
"""python -m torch_graft tune, on PoCL taken as a GPU."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.one_mode

PRODUCT = """
import torch
a, b = torch.randn(40, 70), torch.randn(70, 50)
torch.testing.assert_close((a.to("graft") @ b.to("graft")).cpu(), a @ b)
"""


def run(*command, cache, kind="gpu"):
    seen = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    settings = {
        "GRAFT_DEVICES": "opencl",
        "GRAFT_OPENCL_CLASS": kind,
        "GRAFT_CACHE_DIR": str(cache),
    }
    return subprocess.run(
        [sys.executable, *command], env=seen | settings,
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip


def tuning_file(cache):
    """The one file that holds shapes and no program."""
    return [path for path in cache.iterdir() if b"graft tuning 1\n" in path.read_bytes()]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    cache = tmp_path_factory.mktemp("tuning") / "cache"
    ran = run("-m", "torch_graft", "tune", "--candidates", "1", cache=cache)
    return cache, ran


def test_shows_and_keeps(tuned):
    cache, ran = tuned
    assert ran.returncode == 0, ran.stderr
    for word in ("[  4/4]", "matmul_4_large", "convolution_4_small", "GFLOP/s", "Kept"):
        assert word in ran.stdout
    assert len(tuning_file(cache)) == 1
    assert run("-c", PRODUCT, cache=cache).stderr == ""


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_file_is_ignored_with_one_warning(tuned, damage):
    (path,) = tuning_file(tuned[0])
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] if damage == "cut" else whole[:-2] + b"!" + whole[-1:])
    ran = run("-c", PRODUCT, cache=tuned[0])
    path.write_bytes(whole)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("warning") == 1
    assert "damaged" in ran.stderr


def test_refuses_what_it_cannot_tune(tuned):
    ran = run("-m", "torch_graft", "tune", cache=tuned[0], kind="cpu")
    assert ran.returncode == 1
    assert "has no tiles to tune" in ran.stderr
    for option in ("--candidates=0", "--candidates=-1", "--device=99"):
        ran = run("-m", "torch_graft", "tune", option, cache=tuned[0])
        assert ran.returncode == 1, option
        assert "Traceback" not in ran.stderr
