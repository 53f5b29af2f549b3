# python/torch_graft/integrations/flex_attention.py: PyTorch's flex_attention for the attached device.
"""torch.nn.attention.flex_attention.flex_attention refuses devices that are not in its list of names. The function here is
made of the same code, so that whatever else PyTorch checks is checked; its names lie in a table of their own, in which the
check of the device takes ours. Nothing of torch is changed, so there is nothing to enable."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.attention import flex_attention as _torch

from torch_graft import private_names as inside
from torch_graft.attaching import attached_name
from torch_graft.ve import NAME as SLOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.nn.attention.flex_attention import AuxRequest, BlockMask, FlexKernelOptions

_OURS = (attached_name(), SLOT)
_CHECK = inside.flex_attention_device_check.__name__


def flex_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """torch.nn.attention.flex_attention.flex_attention, which it calls for tensors of other devices.

    Eager and under torch.compile, with gradients. Returns and raises what PyTorch's does on CUDA.
    """
    if query.device.type not in _OURS:
        call = _torch.flex_attention
    else:
        call = _without_list
        if not torch.compiler.is_compiling():
            _refresh()
    return call(
        query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options, return_aux=return_aux
    )  # fmt: skip


def _accept(*_: torch.Tensor) -> None:
    pass


def _refresh() -> None:
    """PyTorch's names again, some of which users set: its flag for debugging, for example."""
    _names.update(vars(_torch))
    _names[_CHECK] = _accept
    # Dynamo reads the names of a function in the module that __name__ says, if it is there.
    _names.pop("__name__", None)


_names: dict[str, Any] = {}
_refresh()
_without_list = FunctionType(
    _torch.flex_attention.__code__, _names, "flex_attention", _torch.flex_attention.__defaults__
)
_without_list.__kwdefaults__ = _torch.flex_attention.__kwdefaults__
