# tests/test_kernels.py: without kernels the CPU computes, and Graft counts it.
from __future__ import annotations

import torch


def test_each_operator_is_counted() -> None:
    x = torch.ones(4, device="acme")
    torch.acme.fallback.reset()
    y = x + x
    assert torch.acme.fallback.total() == 1
    assert y.cpu().tolist() == [2.0] * 4
