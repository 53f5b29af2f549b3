"""`python -m torch_graft doctor`: what was found, loaded, refused, why, and what to do."""

import os
import subprocess
import sys


def doctor(**environment):
    return subprocess.run(
        [sys.executable, "-m", "torch_graft", "doctor"], env=os.environ | environment,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def test_healthy():
    ran = doctor()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    import torch

    for word in ("host", "graft:0", "graft:1", torch.__version__.split("+")[0]):
        assert word in ran.stdout


def test_refused_driver_and_missing_compiler(tmp_path):
    bad = tmp_path / "bad.so"
    bad.write_text("no library")
    ran = doctor(GRAFT_DRIVER_PATH=f"{bad}{os.pathsep}relative.so", GRAFT_CC=str(tmp_path / "none"))
    assert "Traceback" not in ran.stderr
    for word in ("bad.so", "relative.so", "absolute", "GRAFT_CC"):
        assert word in ran.stdout


def test_no_device():
    ran = doctor(GRAFT_HOST_DEVICES="0")
    assert "Traceback" not in ran.stderr
    assert "GRAFT_DRIVER_PATH" in ran.stdout


def test_usage():
    ran = subprocess.run(
        [sys.executable, "-m", "torch_graft", "nonsense"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "doctor" in ran.stderr
