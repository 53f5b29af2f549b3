# conformance/tests/support/planted_layouts.py: a device that is the CPU with faults which only awkward layouts and calls show.
"""A plugin for --plugin: each fault is right for plain tensors and for all that PyTorch refuses elsewhere."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# (entry, dtype, aspect) -> words of the finding
FAULTS = {
    ("cosh", "float32", "layouts"): "[expanded; seed",
    ("sinh", "float32", "layouts"): "[gradient expanded; seed",
    ("tan", "complex64", "layouts"): "[conj; seed",
    ("atan", "float32", "layouts"): "[zero tensor; seed",
    ("expm1", "float16", "layouts"): "not rounded to torch.float16",
    ("hypot", "float32", "layouts"): "[out overlapping; seed",
    ("hypot", "float32", "refusals"): "[out overlapping; seed",
    ("nn.functional.gelu", "float32", "refusals"): "takes what the CPU refuses with NotImplementedError",
    ("gather", "float32", "refusals"): "[index 9999; seed",
    ("cross", "float32", "refusals"): "raises ValueError",
    ("narrow", "float32", "refusals"): "[number -7; seed",
}  # fmt: skip

INDICES = (torch.int32, torch.int64)


def has_stride_0(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and any(
        s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape, strict=True)
    )


class Kernels(TorchDispatchMode):
    """Wrong kernels."""

    def __init__(self, entry: str) -> None:
        super().__init__()
        self.entry = entry

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "gelu" and not args[0].is_floating_point():
            return func(args[0].float(), *args[1:], **kwargs).to(args[0].dtype)
        if name == "gather" and args[2].numel() and args[2].dtype in INDICES:
            args = (*args[:2], args[2] % max(args[0].shape[args[1]] if args[0].dim() else 1, 1))
        result = func(*args, **kwargs)
        if name == "cosh" and has_stride_0(args[0]):
            return result + 1
        if name == "mul" and self.entry == "sinh" and has_stride_0(args[0]):
            return result + 1
        return result


class Calls(TorchFunctionMode):
    """Wrong treatment of lazy bits, of outputs and of arguments."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, out = getattr(func, "__name__", ""), kwargs.get("out")
        if name == "tan" and args[0].is_conj():
            return func(args[0].conj())
        if name == "atan" and args[0]._is_zerotensor():
            raise RuntimeError("not an address of a device")
        if name == "expm1" and out is not None and out.dtype == torch.float32:
            return func(args[0].float(), out=out)
        if name == "hypot" and out is not None and has_stride_0(out):
            return out
        if name == "narrow" and isinstance(args[-1], int):
            args = (*args[:-1], abs(args[-1]) % (1 + args[0].shape[args[1]] - int(args[2])))
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            if name == "cross" and "must match" in str(error):
                raise ValueError(str(error)) from error
            raise


@contextlib.contextmanager
def on_device(cell: Any) -> Any:
    with Calls(), Kernels(cell.entry):
        yield
