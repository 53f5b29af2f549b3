# python/torch_graft/process/rebuilding.py: makes tensors of messages from other processes.
"""What a message calls in the process that reads it, see torch_graft.process.multiprocessing.

attach imports this module nowhere: the first message of a new process does, and so imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing.reductions import SharedCache, StorageWeakRef

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.ve import NAME as SLOT

# Storages by the names of their memory and by whether they are torch.device("ve")'s.
_received = SharedCache()


def _device(index: int, slot: bool) -> torch.device:
    return torch.device(SLOT if slot else inside.privateuse1_name(), index)


def empty_storage(index: int, slot: bool) -> torch.UntypedStorage:
    return torch.empty(0, dtype=torch.uint8, device=_device(index, slot)).untyped_storage()


def shared_storage(name: bytes, handle: bytes, slot: bool) -> torch.UntypedStorage:
    """One storage for all messages about the same memory, as long as it lives here."""
    known = _received.get((name, slot))
    # None once the storage has died.
    alive = None if known is None else inside.storage_if_alive(known.cdata)
    if alive is not None:
        _C.receive_again(handle)
        return alive
    storage = _C.receive_storage(handle, slot)
    _received[name, slot] = StorageWeakRef(storage)
    return storage


def staged_storage(staged: torch.UntypedStorage, index: int, slot: bool) -> torch.UntypedStorage:
    bytes_ = torch.empty(0, dtype=torch.uint8).set_(staged)
    return bytes_.to(_device(index, slot)).untyped_storage()


def dense_tensor(
    storage: torch.UntypedStorage, dtype: torch.dtype, offset: int, size: tuple[int, ...],
    stride: tuple[int, ...], conj: bool, neg: bool,
) -> torch.Tensor:  # fmt: skip
    tensor = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)
    if conj:
        tensor = tensor.conj()
    return inside.neg_view(tensor) if neg else tensor


def coo_tensor(
    indices: torch.Tensor, values: torch.Tensor, shape: torch.Size, coalesced: bool
) -> torch.Tensor:
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced)


def compressed_tensor(
    begins: torch.Tensor, plain: torch.Tensor, values: torch.Tensor, shape: torch.Size,
    layout: torch.layout,
) -> torch.Tensor:  # fmt: skip
    return torch.sparse_compressed_tensor(begins, plain, values, shape, layout=layout)


def nested_tensor(
    values: torch.Tensor, sizes: torch.Tensor, strides: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    return inside.nested_from_buffer(values, sizes, strides, offsets)


def leaf(
    kind: type, requires_grad: bool, make: Callable[..., torch.Tensor], parts: tuple[Any, ...]
) -> torch.Tensor:
    """What make(*parts) gives, as a tensor or a parameter that autograd follows or not."""
    tensor = make(*parts)
    if kind is torch.nn.Parameter:
        # Parameters of integers are made with requires_grad=False.
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor
