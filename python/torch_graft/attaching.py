# python/torch_graft/attaching.py: makes PyTorch know the device type, once per process.
"""Names the device type, registers it and its module through PyTorch's own functions."""

from __future__ import annotations

import atexit
import logging
import time
import warnings

import torch

from torch_graft import drivers, naming, other_names
from torch_graft import private_names as inside

_FREE = "privateuseone"  # the name of PyTorch's slot for a device type while nobody has it
_attached: str | None = None
_log = logging.getLogger("torch_graft.attaching")


def attached_name() -> str | None:
    """The device type's name, None when Graft is not attached."""
    return _attached


def _slot_owner() -> str | None:
    name: str = inside.privateuse1_name()
    return None if name == _FREE else name


def attach() -> None:
    """Attaches Graft; does nothing the second time, or, with a warning, where another has the slot."""
    global _attached
    if _attached is not None:
        return
    owner = _slot_owner()
    if owner is not None:
        warnings.warn(
            f"Graft stays out: PyTorch has one slot for a device type, and '{owner}' uses the slot. "
            "Uninstall one of the two packages, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and load "
            "the one you want.",
            stacklevel=3,
        )
        return
    begin = time.perf_counter()
    from torch_graft import _C, toolchain, ve
    from torch_graft.compiler import default_backend, dynamo_interface, higher_order
    from torch_graft.device import accelerator, additions
    from torch_graft.device import module as device_module
    from torch_graft.process import distributed, multiprocessing

    toolchain.offer()
    offered = drivers.offers()
    for offer in offered:
        _C.add_driver_path(offer.path)
    name = naming.choose(offered)
    torch.utils.rename_privateuse1_backend(name)
    _C.attach()
    _attached = name
    other_names.explain(name, offered)
    module = device_module.device_module(name, accelerator)
    inside.register_device_module(name, module)
    device_module.load_parts(module)
    additions.install(module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    default_backend.register()
    dynamo_interface.register(name, accelerator)
    higher_order.register()
    multiprocessing.register()
    distributed.register(name)
    ve.attach()
    atexit.register(_C.shutdown)
    atexit.register(_record)
    milliseconds = (time.perf_counter() - begin) * 1e3
    _log.info("device type '%s' attached to torch %s in %.0f ms", name, torch.__version__,
              milliseconds)  # fmt: skip


def _record() -> None:
    """At the end of the process. REQUIRES: the devices are not shut down."""
    from torch_graft import _C
    from torch_graft.device import fallback

    if _C.is_initialized():  # else nothing has loaded drivers, and nothing shall now
        drivers.record()
    fallback.record()
