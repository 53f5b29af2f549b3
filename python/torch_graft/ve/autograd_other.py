# python/torch_graft/ve/autograd_other.py: which of two kernels PyTorch takes for ve tensors.
"""PyTorch gives ve tensors the key AutogradOther, which other backends share. Where one of these has
a kernel for an operator that Python composes, too, torch.compile calls the choice ambiguous. On
every other device Python's way for autograd is taken, and so it is here."""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import private_names as inside

# tests/python/ve/test_compiled.py looks for others.
OPERATORS = (
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "native_batch_norm",
    "upsample_nearest2d", "upsample_nearest3d",
)  # fmt: skip


def settle() -> None:
    """Called once, by attach. REQUIRES: torch's decompositions are loaded, as by `import torch`."""
    keys = inside.DispatchKey
    for name in OPERATORS:
        operator: Any = getattr(torch.ops.aten, name).default
        operator.py_impl(keys.AutogradOther)(operator.py_kernels[keys.Autograd])
