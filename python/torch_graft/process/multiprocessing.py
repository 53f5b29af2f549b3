# python/torch_graft/process/multiprocessing.py: tensors of the device in messages to other processes.
"""How torch.multiprocessing sends the device's tensors: by a handle, else through host memory."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.ve import NAME as SLOT

# A function of rebuilding.py and its arguments.
Recipe = tuple[Callable[..., Any], tuple[Any, ...]]

_log = logging.getLogger("torch_graft.multiprocessing")
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def ipc_collect() -> None:
    """Takes back the memory of sent tensors that no process uses any more.

    It happens by itself when more is sent, and before the device runs out of memory.
    """
    _C.collect_shared_memory()


def _is_ours(device: torch.device) -> bool:
    return device.type in (inside.privateuse1_name(), SLOT)


def reduce_storage(storage: torch.UntypedStorage) -> Recipe:
    """As torch's, for storages of the device, too."""
    if not _is_ours(storage.device):
        return reductions.reduce_storage(storage)
    # Late, since a process that unpickles imports that module first, and it imports torch.
    from torch_graft.process import rebuilding

    index, slot = storage.device.index, storage.device.type == SLOT
    if storage.nbytes() == 0:
        return rebuilding.empty_storage, (index, slot)
    shared = _C.share_storage(storage)
    if shared is not None:
        _log.debug("%d bytes of %s go to another process by a handle", storage.nbytes(),
                   storage.device)  # fmt: skip
        return rebuilding.shared_storage, (*shared, slot)
    _log.debug("%d bytes of %s go to another process through host memory", storage.nbytes(),
               storage.device)  # fmt: skip
    torch.get_device_module(storage.device).synchronize(index)
    whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return rebuilding.staged_storage, (whole.cpu().untyped_storage(), index, slot)


def reduce_tensor(tensor: torch.Tensor) -> Recipe:
    """As torch's, for tensors of the device, too."""
    if not _is_ours(tensor.device):
        return reductions.reduce_tensor(tensor)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries. If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor.is_quantized:
        raise RuntimeError(
            "Quantized tensors cannot be sent to another process, on any device: send int_repr() "
            "with the scale and the zero point."
        )
    torch.utils.hooks.warn_if_has_hooks(tensor)
    from torch_graft.process import rebuilding

    whole = tensor.detach()
    recipe: Recipe
    if tensor.is_nested:
        recipe = rebuilding.nested_tensor, _nested_parts(whole)
    elif tensor.layout == torch.sparse_coo:
        parts = (
            inside.coo_indices(whole),
            inside.coo_values(whole),
            whole.shape,
            whole.is_coalesced(),
        )
        recipe = rebuilding.coo_tensor, parts
    elif tensor.layout in _COMPRESSED:
        recipe = rebuilding.compressed_tensor, _compressed_parts(whole)
    else:
        recipe = rebuilding.dense_tensor, _dense_parts(whole)
    return rebuilding.leaf, (type(tensor), tensor.requires_grad, *recipe)


def _dense_parts(tensor: torch.Tensor) -> tuple[Any, ...]:
    where = tensor.storage_offset(), tuple(tensor.size()), tensor.stride()
    bits = tensor.is_conj(), tensor.is_neg()
    return (tensor.untyped_storage(), tensor.dtype, *where, *bits)


def _compressed_parts(tensor: torch.Tensor) -> tuple[Any, ...]:
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the layout is in beta, as the maker was told
        begins = tensor.crow_indices() if rows else tensor.ccol_indices()
        plain = tensor.col_indices() if rows else tensor.row_indices()
        return begins, plain, tensor.values(), tensor.shape, tensor.layout


def _nested_parts(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tensor.values(),
        inside.nested_sizes(tensor),
        inside.nested_strides(tensor),
        inside.nested_offsets(tensor),
    )


def register() -> None:
    """Called once, by attach: torch's own reducers keep the tensors of other devices."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)
