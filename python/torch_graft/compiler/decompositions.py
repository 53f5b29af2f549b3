# python/torch_graft/compiler/decompositions.py: which operators reach the compiler whole.
"""PyTorch's core decompositions, less those of operators that the compiler wants in one piece."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.user_kernels import users_among

_KERNEL = "one kernel of the library with its own order of summation; parts would read memory twice"
_LIBRARY = "one call of the device's library, with the addition or scaling as its epilogue"
_SCATTER = "one kernel that adds by index; its parts go through tensors of zeros and index_put"
_PART = "a fill and a copy of one part; its decomposition copies the whole tensor once more"
_FILL = "what the numbers are is known: constant folding reads this form"

# Operators whose decomposition is left out, and why. Besides those that a row of the op table
# computes, whose parts would be several nodes that fusion has to find again.
KEPT: dict[str, str] = {
    "aten._softmax_backward_data.default": "expand_composites writes it as one fused reduction",
    "aten._log_softmax_backward_data.default": "expand_composites writes it as one fused reduction",
    "aten._safe_softmax.default": _KERNEL,
    "aten.native_layer_norm_backward.default": _KERNEL,
    "aten.native_group_norm_backward.default": _KERNEL,
    "aten.native_batch_norm_backward.default": _KERNEL,
    "aten.nll_loss_forward.default": _KERNEL,
    "aten.nll_loss_backward.default": _KERNEL,
    "aten.nll_loss2d_forward.default": _KERNEL,
    "aten.nll_loss2d_backward.default": _KERNEL,
    "aten.baddbmm.default": _LIBRARY,
    "aten._scaled_dot_product_flash_attention_for_cpu.default": _KERNEL,
    "aten.bernoulli.default": "takes numbers of the device's generator, in its order",
    "aten.embedding_dense_backward.default": _SCATTER,
    "aten.index_add.default": _SCATTER,
    "aten.index_fill.int_Tensor": "its parts refuse a value that is a number in host memory",
    "aten.select_backward.default": _PART,
    "aten.slice_backward.default": _PART,
    "aten._unsafe_view.default": "a view like the others; the compiler knows it by this name",
    "aten.detach.default": "a view that remove_copies takes out",
    "aten.split.Tensor": "one view with several results; parts would each carry an offset",
    "aten.squeeze.dim": "a view with the dimension in its arguments",
    "aten.t.default": "the form in which products find their transposed operand",
    "aten.transpose.int": "the form in which products find their transposed operand",
    "aten.stack.default": "one kernel; its parts are a view per operand and cat",
    "aten.tril.default": "one kernel; its parts build index grids",
    "aten.triu.default": "one kernel; its parts build index grids",
    "aten.zeros.default": _FILL,
    "aten.ones.default": _FILL,
    "aten.zeros_like.default": _FILL,
    "aten.ones_like.default": _FILL,
    "aten.new_zeros.default": _FILL,
    "aten.new_ones.default": _FILL,
    "aten.upsample_nearest2d.default": _KERNEL,
    "aten.avg_pool1d.default": _KERNEL,
    "aten.pixel_shuffle.default": "one kernel; its parts are views around a copy",
    "aten.grid_sampler.default": _KERNEL,
}


def table(device: torch.device | None = None) -> dict[Any, Callable[..., Any]]:
    """What AOTAutograd decomposes. Convolution, addmm, mm, bmm, attention, softmax, layer norm and
    batch norm forward are no core decompositions: they arrive whole by themselves. So do operators
    that a kernel of the user's computes on the device."""
    rows = {
        f"aten.{one.split('(')[0]}"
        for row in json.loads(_C.op_table_json())
        for one in row["overloads"]
    }
    made = {operator: function for operator, function in inside.core_aten_decompositions().items()
            if str(operator) not in rows | KEPT.keys()}  # fmt: skip
    made[torch.ops.aten.clamp.Tensor] = _clamp_to_numbers
    made[torch.ops.aten.pow.Scalar] = _power_of_number
    made[torch.ops.aten.copy.default] = _copied
    for operator in users_among(made, device):
        del made[operator]
    return made


def _copied(to: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """What copy_() leaves in a tensor, in that tensor's strides: fused where its parts are."""
    if to.device != source.device:
        return NotImplemented
    spread = source.expand(to.shape)
    if to.is_contiguous():
        return inside.to_copy(spread, dtype=to.dtype, memory_format=torch.contiguous_format)
    copied = inside.to_copy(spread, dtype=to.dtype)
    return copied if copied.stride() == to.stride() else NotImplemented


def _power_of_number(base: float, exponent: torch.Tensor) -> torch.Tensor:
    """A row of the op table takes two tensors; the number goes into its kernel."""
    dtype = torch.result_type(exponent, base)
    return torch.pow(torch.full((), base, dtype=dtype, device=exponent.device), exponent)


def _clamp_to_numbers(
    x: torch.Tensor, min: torch.Tensor | None = None, max: torch.Tensor | None = None
) -> torch.Tensor:
    """clamp refuses bounds that are numbers in host memory, which these operators take."""
    bounds = [bound for bound in (min, max) if bound is not None]
    if all(bound.device == x.device for bound in bounds):
        return NotImplemented
    low = x if min is None else torch.maximum(x, min)
    return low if max is None else torch.minimum(low, max)
