# python/torch_graft/ve/__init__.py: torch.device("ve"), PyTorch's second slot for devices.
"""Attaches the slot: torch.ve, Tensor.ve(), Module.ve() and the others, by PyTorch's own makers."""

from __future__ import annotations

import logging
import os
import warnings
from importlib.metadata import entry_points
from typing import Any

from torch_graft import private_names as inside

NAME = "ve"
VARIABLE = "GRAFT_VE"
_OTHERS = "veda_pytorch"  # the entry point of NEC's package
_attached = False
_log = logging.getLogger("torch_graft.ve")
_PRIORITY = 40  # after the device types that torch.serialization knows itself


def attached() -> bool:
    """Whether Graft serves torch.device("ve") in this process."""
    return _attached


def attach() -> None:
    """Does nothing with GRAFT_VE=0, or, with a warning, where another package serves the slot."""
    global _attached
    chosen = os.environ.get(VARIABLE, "1")
    if chosen not in ("0", "1"):
        warnings.warn(f"{VARIABLE}={chosen}: expected 0 or 1; Graft uses 1", stacklevel=3)
    if chosen == "0":
        _log.info("torch.device('%s') left to others: %s=0", NAME, VARIABLE)
        return
    import torch

    from torch_graft import _C

    if _C.ve.taken() or hasattr(torch, NAME) or _another_will_come():
        warnings.warn(
            "Graft does not serve torch.device('ve'), because another package does. Uninstall one of "
            f"the two packages, or set {VARIABLE}=0 to silence this warning.",
            stacklevel=3,
        )
        return
    from torch_graft.compiler import dynamo_interface
    from torch_graft.device import module as device_module
    from torch_graft.ve import autograd_other, module

    _C.ve.attach()
    made = device_module.device_module(NAME, module)
    inside.register_device_module(NAME, made)
    device_module.load_parts(made)
    _add_methods()
    dynamo_interface.register(NAME, module)
    autograd_other.settle()
    torch.serialization.register_package(_PRIORITY, _tag, _restore)
    _attached = True
    _log.info("torch.device('%s') attached", NAME)


def _another_will_come() -> bool:
    """Whether `import torch` loads NEC's package after this one, which would fail if the slot were
    taken."""
    return any(entry.name == _OTHERS for entry in entry_points(group="torch.backends"))


def _add_methods() -> None:
    inside.generate_tensor_methods(NAME)
    inside.generate_module_methods(NAME)
    inside.generate_packed_sequence_methods(NAME)
    inside.generate_storage_methods(NAME)
    _replace_storage_methods()


def _replace_storage_methods() -> None:
    """The storage's method that PyTorch makes, and the copier of deepcopy, ask for memory by
    UntypedStorage(bytes, device=...), which knows no ve devices. tools/patch_rules.py names both."""
    import copy

    import torch

    torch.UntypedStorage.ve = _storage_on
    copy._deepcopy_dispatch[torch.UntypedStorage] = _copied  # type: ignore[attr-defined]


def _storage_on(storage: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A copy of a storage in the memory of a ve device; the storage itself if it lies there."""
    from torch_graft.ve.carried import slot_index

    index = slot_index(device)
    if storage.device.type == NAME and storage.device.index == index:
        return storage
    return _new_storage(storage.nbytes(), index).copy_(storage, non_blocking)


def _new_storage(nbytes: int, index: int) -> Any:
    import torch

    return torch.empty(nbytes, dtype=torch.uint8, device=f"{NAME}:{index}").untyped_storage()


def _copied(storage: Any, memo: dict[Any, Any]) -> Any:
    if storage.device.type != NAME:
        return storage.__deepcopy__(memo)
    known = memo.setdefault("torch", {})
    address = inside.storage_address(storage)
    if address not in known:
        known[address] = _new_storage(storage.nbytes(), storage.device.index).copy_(storage)
    return known[address]


def _tag(storage: Any) -> str | None:
    device = storage.device
    return f"{NAME}:{device.index}" if device.type == NAME else None


def _restore(storage: Any, location: str) -> Any:
    if location.partition(":")[0] != NAME:
        return None
    index = inside.validated_location(location, NAME).index
    return getattr(storage, NAME)(index)
