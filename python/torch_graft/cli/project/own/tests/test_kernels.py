# tests/test_kernels.py: the vendor's kernels compute what they take, and the CPU is counted.
from __future__ import annotations

import os
import subprocess
import sys

import torch


def test_the_vendors_kernels_compute() -> None:
    x = torch.ones(4, 4, device="acme")
    with torch.acme.kernels() as ran:
        (x @ torch.relu(x) + x).sum()
    assert ran.total()["vendor"] == 4
    assert ran.total()["cpu"] == 0


def test_what_has_no_kernel_is_counted() -> None:
    torch.acme.fallback.reset()
    torch.ones(4, device="acme").erfinv()
    assert torch.acme.fallback.total() == 1


def test_the_result_is_the_chips() -> None:
    code = "import torch; x = torch.ones(4, device='acme'); print((x + x).sum().item())"
    settings = os.environ | {"ACME_FAULT": "launch:drop"}
    ran = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() != "8.0"
