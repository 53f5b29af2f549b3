# python/torch_graft/compiler/higher_order.py: kernels of PyTorch's higher-order operators for the device.
"""Registers what torch._higher_order_ops would send through wider dtypes than the device needs, or has for the CPU and CUDA
alone, and puts operators of graphs in the place of what would be a graph inside of a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from torch_graft import private_names as inside


def _product(op: Any, dtype: torch.dtype, *operands: Any) -> torch.Tensor:
    """out_dtype: a product of int8 matrices with an int32 result is one operator, as on CUDA."""
    if op is torch.ops.aten.mm.default and dtype == torch.int32:
        left, right = operands
        if left.dtype == right.dtype == torch.int8:
            return inside.int8_product(left, right)
    result: torch.Tensor = inside.out_dtype_dense(op, dtype, *operands)
    return result


def _lowered(compute: Any, *operands: Any) -> Any:
    """flex_attention under autocast: as on CUDA, only its query, key and value become narrower."""
    kind, first = operands[0].device.type, operands[:3]
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        first = tuple(one if one.dtype == torch.float64 else one.to(dtype) for one in first)
    with torch.autocast(kind, enabled=False):
        return compute(*first, *operands[3:])


def _attention(*operands: Any) -> Any:
    return _lowered(torch.ops.higher_order.flex_attention, *operands)


def _expanded_attention(*operands: Any) -> Any:
    return _lowered(inside.flex_attention_dense, *operands)


def expand(module: fx.GraphModule) -> None:
    """flex_attention of Dynamo's graph becomes the operators that it stands for, which compile and have gradients."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            found = part.graph.find_nodes(
                op="call_function", target=torch.ops.higher_order.flex_attention
            )
            for node in found:
                node.target = _expanded_attention
            if found:
                part.recompile()


def register() -> None:
    """Called once, by attach, when the device type is known."""
    inside.out_dtype.py_impl(inside.DispatchKey.PrivateUse1)(_product)
    torch.ops.higher_order.flex_attention.py_impl(inside.DispatchKey.AutocastPrivateUse1)(
        _attention
    )
