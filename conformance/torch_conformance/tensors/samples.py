# conformance/torch_conformance/tensors/samples.py: brings the CPU's sample inputs onto the device, in any layout.
"""Samples are made on the CPU, so that a wrong device cannot spoil them, and then carried over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torch_conformance import private_names as inside
from torch_conformance.tensors.compare import leaves, mapped

WHOLE = 1 << 20  # elements of a storage that is carried whole
OFFSET = 3  # elements before the first one in the layout "view"


def is_strided(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_quantized


def _same_bits(tensor: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
    """image with the lazy conjugate and negative bits of tensor."""
    if tensor.is_conj():
        image = image.conj()
    return inside.neg_view(image) if tensor.is_neg() else image


def _bare(tensor: torch.Tensor) -> torch.Tensor:
    """The stored values of a tensor, without lazy bits."""
    if tensor.is_neg():
        tensor = inside.neg_view(tensor)
    return tensor.conj() if tensor.is_conj() else tensor


def carried(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on the device with the same sizes, strides, lazy bits and requires_grad."""
    if tensor.device.type != "cpu":
        return tensor  # on the device already, or on another one on purpose
    source = tensor.detach()
    home = device.type == "cpu"
    if not is_strided(source):
        copy = source.clone() if home else source.to(device)
    elif _fills_its_storage(source):
        copy = source.clone() if home else source.to(device, copy=True)
    else:
        bare = _bare(source)
        memory, offset = _memory(bare)
        memory = memory.clone() if home else memory.to(device, copy=True)
        copy = _same_bits(source, memory.as_strided(bare.shape, bare.stride(), offset))
    return copy.requires_grad_() if tensor.requires_grad else copy


def _fills_its_storage(tensor: torch.Tensor) -> bool:
    used = tensor.numel() * tensor.itemsize
    plain = tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()
    return plain and tensor.untyped_storage().nbytes() == used


def _memory(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """What is stored behind a tensor, and where in it the tensor begins; no more than it spans of
    a large storage."""
    count = tensor.untyped_storage().nbytes() // tensor.itemsize
    if count <= WHOLE:
        whole = torch.empty(0, dtype=tensor.dtype)
        return whole.set_(tensor.untyped_storage(), 0, (count,), (1,)), tensor.storage_offset()
    spans = [
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    ]
    return tensor.as_strided((1 + sum(spans) if tensor.numel() else 0,), (1,)), 0


def shifted(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on the device that begins in the middle of a larger storage."""
    source = tensor.detach()
    if not is_strided(source):
        return carried(tensor, device)
    source = source.contiguous().resolve_conj().resolve_neg()
    memory = torch.zeros(OFFSET + source.numel() + 1, dtype=source.dtype)
    memory[OFFSET : OFFSET + source.numel()] = source.reshape(-1)
    copy = memory.to(device, copy=True).as_strided(source.shape, source.stride(), OFFSET)
    return copy.requires_grad_() if tensor.requires_grad else copy


def noncontiguous(tensor: torch.Tensor) -> torch.Tensor:
    if not is_strided(tensor) or tensor.numel() < 2 or tensor.dim() == 0:
        return tensor
    return inside.noncontiguous_like(tensor.detach()).requires_grad_(tensor.requires_grad)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if not is_strided(tensor) or tensor.dim() not in formats:
        return tensor
    copy = tensor.detach().contiguous(memory_format=formats[tensor.dim()])
    return copy.requires_grad_(tensor.requires_grad)


class Carrier:
    """Carries whole argument structures; one tensor given twice stays one tensor."""

    def __init__(
        self,
        device: torch.device,
        layout: Callable[[torch.Tensor], torch.Tensor] | None = None,
        move: Callable[[torch.Tensor, torch.device], torch.Tensor] = carried,
    ) -> None:
        self.device = device
        self.layout = layout
        self.move = move

    @property
    def changes_layout(self) -> bool:
        return self.layout is not None or self.move is not carried

    def at_home(self) -> Carrier:
        """The same layouts on the CPU."""
        return Carrier(torch.device("cpu"), self.layout, self.move)

    def __call__(self, value: Any, at_home: bool = False) -> Any:
        """at_home: tensors are copied, but stay on the CPU."""
        seen: dict[int, torch.Tensor] = {}
        device = torch.device("cpu") if at_home else self.device

        def one(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in seen:
                laid = self.layout(tensor) if self.layout else tensor
                seen[id(tensor)] = self.move(laid, device)
            return seen[id(tensor)]

        return self._places(mapped(value, one))

    def _places(self, value: Any) -> Any:
        """Arguments that name the CPU name the device instead."""
        if isinstance(value, torch.device):
            return self.device
        if value == "cpu" and isinstance(value, str):
            return str(self.device)
        if type(value) in (tuple, list):
            return type(value)(map(self._places, value))
        if isinstance(value, dict):
            return {k: self.device if k == "device" and v is not None else self._places(v)
                    for k, v in value.items()}  # fmt: skip
        return value


def upcast(value: Any) -> Any:
    """Floating tensors in float64, complex ones in complex128, dtype arguments alike."""
    wide = {True: torch.complex128, False: torch.float64}

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor.clone()
        copy = tensor.detach().to(wide[tensor.is_complex()], copy=True)
        return copy.requires_grad_(tensor.requires_grad)

    def dtypes(item: Any) -> Any:
        if isinstance(item, torch.dtype) and (item.is_floating_point or item.is_complex):
            return wide[item.is_complex]
        if type(item) in (tuple, list):
            return type(item)(map(dtypes, item))
        return {k: dtypes(v) for k, v in item.items()} if isinstance(item, dict) else item

    return dtypes(mapped(value, one))


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """dtype as torch's default inside the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def storages(value: Any) -> set[int]:
    """The addresses of the storages behind strided tensors."""
    return {inside.storage_address(t.untyped_storage()) for t in leaves(value) if is_strided(t)}


def shares(result: Any, inputs: Any) -> list[bool]:
    """For each tensor of a result, whether its storage is an input's."""
    known = storages(inputs)
    return [
        is_strided(t) and inside.storage_address(t.untyped_storage()) in known
        for t in leaves(result)
    ]
