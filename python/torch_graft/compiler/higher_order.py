# python/torch_graft/compiler/higher_order.py: kernels of PyTorch's higher-order operators for the device.
"""Registers what torch._higher_order_ops would send through wider dtypes than the device needs."""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import private_names as inside


def _product(op: Any, dtype: torch.dtype, *operands: Any) -> torch.Tensor:
    """out_dtype: a product of int8 matrices with an int32 result is one operator, as on CUDA."""
    if op is torch.ops.aten.mm.default and dtype == torch.int32:
        left, right = operands
        if left.dtype == right.dtype == torch.int8:
            return inside.int8_product(left, right)
    result: torch.Tensor = inside.out_dtype_dense(op, dtype, *operands)
    return result


def register() -> None:
    """Called once, by attach, when the device type is known."""
    inside.out_dtype.py_impl(inside.DispatchKey.PrivateUse1)(_product)
