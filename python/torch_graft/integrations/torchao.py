# python/torch_graft/integrations/torchao.py: torchao's weights of 8 and 4 bits are multiplied as they lie.
"""torchao's product with int8 weights casts the whole weight at each call, and its int4 formats ask for CUDA."""

from __future__ import annotations

import types
from typing import Any

import torch

from torch_graft import private_names as inside
from torch_graft.integrations.changes import Changes
from torch_graft.integrations.registry import enable


def apply(changes: Changes, device: str) -> None:
    from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor
    from torchao.quantization.quantize_.workflows.int4.int4_tile_packed_to_4d_tensor import (
        Int4TilePackedTo4dTensor,
    )
    from torchao.quantization.quantize_.workflows.int8.int8_tensor import Int8Tensor

    implemented: tuple[tuple[Any, Any], ...] = (
        (Int8Tensor._TORCH_FN_TABLE[Int8Tensor], torch.nn.functional.linear),
        (Int8Tensor._ATEN_OP_TABLE[Int8Tensor], torch.ops.aten.linear.default),
    )
    for table, function in implemented:
        changes.put(table, function, reading_bytes(table[function], device))
    tiles, plain = Int4TilePackedTo4dTensor.from_hp, Int4Tensor.from_hp
    packed = with_global(tiles.__func__, "torch", Torch())

    def from_hp(cls: Any, hp_tensor: torch.Tensor, *rest: Any, **more: Any) -> Any:
        pack = packed if hp_tensor.device.type == device else tiles.__func__
        return pack(cls, hp_tensor, *rest, **more)

    def plain_from_hp(
        cls: Any, w: torch.Tensor, block_size: list[int], *rest: Any, **more: Any
    ) -> Any:
        bfloat16 = not rest and more.get("activation_dtype", torch.bfloat16) == torch.bfloat16
        if w.device.type == device and bfloat16:
            return packed(Int4TilePackedTo4dTensor, w, block_size)
        return plain.__func__(cls, w, block_size, *rest, **more)

    changes.replace(Int4TilePackedTo4dTensor, "from_hp", classmethod(from_hp))
    changes.replace(Int4Tensor, "from_hp", classmethod(plain_from_hp))


def reading_bytes(original: Any, device: str) -> Any:
    """The linear layer of an Int8Tensor, as one operator where only the weight on the device is quantized, a scale a row."""

    def linear(func: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        x, weight, bias = args[0], args[1], args[2] if len(args) > 2 else kwargs.get("bias")
        rows = weight.qdata
        one_scale = weight.block_size[-1] >= rows.shape[-1] and weight.act_quant_kwargs is None
        needs_gradient = torch.is_grad_enabled() and x.requires_grad
        if rows.device.type != device or rows.ndim != 2 or not one_scale or needs_gradient:
            return original(func, kinds, args, kwargs)
        if weight.act_pre_scale is not None:
            x = x * weight.act_pre_scale
        scales = weight.scale.flatten().expand(rows.shape[0])
        y = inside.int8_weight_product(x.reshape(-1, x.shape[-1]), rows, scales)
        y = y.reshape(*x.shape[:-1], rows.shape[0])
        return (y if bias is None else y + bias).to(args[0].dtype)

    return linear


def with_global(function: Any, name: str, value: Any) -> Any:
    """The function with another object behind a global name; other functions of its module keep theirs."""
    return types.FunctionType(
        function.__code__, {**function.__globals__, name: value}, function.__name__,
        function.__defaults__, function.__closure__,
    )  # fmt: skip


class Torch:
    """torch, whose cuda answers for the device's capability with the least that torchao asks for."""

    def __init__(self) -> None:
        self.cuda = types.SimpleNamespace(get_device_capability=lambda: (8, 0))

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


enable("torchao")
