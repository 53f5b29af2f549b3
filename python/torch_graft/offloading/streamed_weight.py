# python/torch_graft/offloading/streamed_weight.py: a weight that has memory on the device around its uses only.
from __future__ import annotations

from typing import Any

import torch

from torch_graft import _C
from torch_graft import private_names as inside


def address(tensor: torch.Tensor) -> int:
    """Of the tensor's storage, which all views share."""
    return int(inside.storage_address(tensor.untyped_storage()))


class StreamedWeight:
    """A weight's tensor on the device, the same object with the same storage while memory comes and goes."""

    def __init__(self, host: torch.Tensor, copy: torch.Tensor, buffer: bool) -> None:
        self.host, self.copy, self.buffer = host, copy, buffer
        self.watch = _C.CopyWatch(copy, buffer)
        if not buffer:
            _C.share_count(copy, host)
        self.loaded = False
        self.arrived: Any = None  # an event behind the copy, until somebody has waited for it
        self.used: Any = None  # an event behind the operators that used it
        self.empty()

    @property
    def bytes(self) -> int:
        return self.host.numel() * self.host.element_size()

    @property
    def address(self) -> int:
        return address(self.copy)

    def follow(self, gradients: bool) -> None:
        """Gives the copy its host's form, and makes it a function of the host where that wants gradients."""
        copy = self.copy
        form = torch.empty_like(self.host, device="meta")
        if (copy.dtype, copy.shape, copy.stride()) != (form.dtype, form.shape, form.stride()):
            copy.data = torch.empty_like(self.host, device=copy.device)
            self.empty()
        linked = gradients and self.host.requires_grad
        if copy.requires_grad != linked:
            _C.count_apart(copy)
            if linked:
                _Link.apply(self.host, copy)
                _C.hurry_gradient(copy)  # so that its memory is free before the next one comes
            else:
                copy.detach_()
            _C.share_count(copy, self.host)

    def load(self, copying: Any) -> None:
        """Queues the copy. Throws torch.OutOfMemoryError and is then empty."""
        with torch.get_device_module(self.copy.device.type).stream(copying):
            try:
                _C.resize_memory(self.copy, self.bytes)
                self.copy.data.copy_(_C.pinned_copy(self.host.detach()), non_blocking=True)
            except BaseException:
                self.empty()
                raise
            self.arrived = copying.record_event()
        self.watch.look()
        self.loaded = True

    def bring_home(self) -> None:
        """Makes the host equal to the copy if the device wrote it; counted as on the CPU."""
        if self.watch.written():
            host = self.host if self.buffer else self.host.data  # the device's write was counted
            with torch.no_grad():
                host.copy_(self.copy)

    def empty(self) -> None:
        _C.resize_memory(self.copy, 0)
        self.loaded, self.arrived, self.used = False, None, None


class _Link(torch.autograd.Function):
    """Makes a copy a function of its host without copying anything."""

    @staticmethod
    def forward(ctx: Any, host: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(copy)
        return copy

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient.to("cpu"), None
