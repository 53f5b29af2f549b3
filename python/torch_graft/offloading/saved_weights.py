# python/torch_graft/offloading/saved_weights.py: streamed weights that a backward pass uses.
"""Autograd saves which weight an operator used, not its memory; the backward pass fetches it again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import checkpoint

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.offloading.streamed_weight import StreamedWeight

Find = Callable[[torch.Tensor], StreamedWeight | None]


def saving(find: Find, copying: Any) -> torch.autograd.graph.saved_tensors_hooks:
    """Around a forward pass: what its backward pass does about tensors that it saves."""
    saves = _Saves(find, copying)
    return torch.autograd.graph.saved_tensors_hooks(saves.pack, saves.unpack)


def refuse_checkpoints() -> None:
    """Raises RuntimeError within torch.utils.checkpoint: outside the call its part has no weights."""
    hooks = inside.saved_tensors_hooks_now(False)
    if hooks is not None and hooks[0].__module__ == checkpoint.__name__:
        raise RuntimeError(
            "the model uses torch.utils.checkpoint, which computes a part again in the backward pass, but "
            "its weights are streamed through the device and have no memory then: leave the checkpoint "
            'out, or give optimize() resident="all"'
        )


class _Saved:
    """A tensor as it was saved: a view of a streamed weight, or itself."""

    def __init__(self, tensor: torch.Tensor, weight: StreamedWeight | None) -> None:
        self.count = None if tensor.is_inference() else inside.autograd_version(tensor)
        self.weight = weight
        self.tensor = tensor if weight is None else tensor.detach()
        self.before: _Saved | None = None  # the view of a weight that was saved before this one
        self.fetched: tuple[torch.Tensor, Any] | None = None  # ahead, with the event of its arrival

    def check(self) -> None:
        """PyTorch's own check, which it leaves out for tensors with hooks."""
        if self.count is not None and inside.autograd_version(self.tensor) != self.count:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: {self.tensor.dtype} {list(self.tensor.shape)} is at version "
                f"{inside.autograd_version(self.tensor)}; expected version {self.count} instead"
            )


class _Saves:
    """What one forward pass saved. Backward passes call unpack from autograd's threads."""

    def __init__(self, find: Find, copying: Any) -> None:
        self.find, self.copying = find, copying
        self.last: _Saved | None = None
        self.lock = threading.Lock()

    def pack(self, tensor: torch.Tensor) -> _Saved:
        saved = _Saved(tensor, self.find(tensor))
        if saved.weight is not None:
            saved.before, self.last = self.last, saved
        return saved

    def unpack(self, saved: _Saved) -> torch.Tensor:
        saved.check()
        if saved.weight is None:
            return saved.tensor
        with self.lock:
            found, arrived = saved.fetched or self._fetch(saved.tensor, saved.weight)
            saved.fetched = None
            before = saved.before
            if before is not None and before.fetched is None:
                before.fetched = self._fetch_ahead(before)
        stream = torch.get_device_module(found.device.type).current_stream(found.device)
        stream.wait_event(arrived)
        found.record_stream(stream)
        return found

    def _fetch(self, view: torch.Tensor, weight: StreamedWeight) -> tuple[torch.Tensor, Any]:
        """The same view of memory apart, on its way."""
        with torch.get_device_module(view.device.type).stream(self.copying), torch.no_grad():
            whole = torch.empty_like(weight.host, device=view.device, requires_grad=False)
            whole.copy_(_C.pinned_copy(weight.host.detach()), non_blocking=True)
            form = view.storage_offset(), view.shape, view.stride()
            found = torch.empty(0, dtype=view.dtype, device=view.device)
            found.set_(whole.untyped_storage(), *form)
            return found, self.copying.record_event()

    def _fetch_ahead(self, saved: _Saved) -> tuple[torch.Tensor, Any] | None:
        try:
            return self._fetch(saved.tensor, saved.weight)  # type: ignore[arg-type]
        except torch.OutOfMemoryError:
            return None
