# tests/test_kernels.py: Graft's kernels are compiled for the chip and run on it.
from __future__ import annotations

import os
import subprocess
import sys

import torch


def test_the_chip_computes() -> None:
    x = torch.ones(4, 4, device="acme")
    with torch.acme.kernels() as ran:
        (x @ torch.relu(x) + x).softmax(1).sum()
    assert ran.total()["generated"] > 0
    assert ran.total()["cpu"] == 0


def run(code: str, **settings: str) -> str:
    command = [sys.executable, "-c", f"import torch\n{code}"]
    ran = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_result_is_the_chips() -> None:
    code = "x = torch.ones(4, device='acme')\nprint((x + x).sum().item())"
    assert run(code) == "8.0"
    assert run(code, ACME_FAULT="launch:drop") != "8.0"


def test_without_a_compiler_the_cpu_computes_and_is_counted() -> None:
    code = "print((torch.ones(4, device='acme') * 5).sum().item(), torch.acme.fallback.total() > 0)"
    assert run(code, ACME_CC="no-such-compiler", GRAFT_CACHE_DIR="") == "20.0 True"
