# python/torch_graft/device/accelerator.py: the module torch.graft.
"""Devices, streams, memory, random numbers and drivers: what torch.cuda offers, for Graft."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any, NamedTuple

import torch

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.device import amp, fallback, graphs, memory, random, streams
from torch_graft.device.graphs import (
    Graph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from torch_graft.device.indices import DeviceLike, device_index
from torch_graft.device.kernels import Kernels, kernels
from torch_graft.device.links import DeviceLink, can_device_access_peer, device_link
from torch_graft.device.memory import (
    attach_out_of_memory_observer,
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    dump_memory_snapshot,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    record_memory_history,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_graft.device.pools import MemPool, use_mem_pool
from torch_graft.device.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_graft.device.sensors import clock_rate, power_draw, temperature, utilization
from torch_graft.device.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from torch_graft.drivers import record as _record_drivers
from torch_graft.process.multiprocessing import ipc_collect

__all__ = [
    "DeviceLink", "DeviceProperties", "Event", "ExternalStream", "Graph", "Kernels", "MemPool",
    "OutOfMemoryError", "Stream", "StreamContext", "amp", "attach_out_of_memory_observer",
    "caching_allocator_alloc", "caching_allocator_delete", "can_device_access_peer", "clock_rate",
    "current_device", "current_stream", "default_stream", "device", "device_count", "device_link",
    "device_memory_used", "device_of", "devices", "drivers", "dump_memory_snapshot", "empty_cache", "fallback",
    "get_allocator_backend", "get_amp_supported_dtype", "get_device_capability", "get_device_name",
    "get_device_properties", "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all",
    "get_sync_debug_mode", "graph", "graph_pool_handle", "graphs", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "kernels", "load_driver",
    "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "power_draw", "random", "record_memory_history",
    "refusals", "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats", "reset_device",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "statistics", "stream", "streams", "synchronize", "temperature", "use_mem_pool",
    "utilization",
]  # fmt: skip

DeviceProperties = _C.DeviceProperties
OutOfMemoryError = torch.OutOfMemoryError
_set_stream_by_id = streams._set_stream_by_id
_get_rng_state_offset = random._get_rng_state_offset
_set_rng_state_offset = random._set_rng_state_offset

# torch.serialization and others look the function up under this name.
_utils = SimpleNamespace(_get_device_index=device_index)


class DriverInfo(NamedTuple):
    """A driver library that was loaded, or refused and why."""

    name: str
    path: str


class Refusal(NamedTuple):
    path: str
    reason: str


def is_available() -> bool:
    """Whether there is a device. Opens none."""
    return device_count() > 0


def device_count() -> int:
    """Number of devices of all drivers. Loads drivers at the first call, opens no device."""
    return int(_C.device_count())


def current_device() -> int:
    # By PyTorch's function: Dynamo knows it, and compiles again where its answer changes.
    return torch.accelerator.current_device_index()


def set_device(device: DeviceLike) -> None:
    """Makes a device current for this thread."""
    _C.set_device(device_index(device))


def synchronize(device: DeviceLike = None) -> None:
    """Waits for all work of a device; raises what failed meanwhile."""
    if device is None and not is_available():
        return  # torch.profiler calls this at its end, whether there is a device or not
    torch.accelerator.synchronize(device_index(device, optional=True))


def reset_device(device: DeviceLike = None) -> None:
    """Brings a lost device back, where its driver can (device_reset). New work runs then.

    Tensors, events that were recorded, and graphs of before the loss stay lost: their use raises.
    Streams are there again, empty. Raises RuntimeError for a device that is not lost.
    """
    _C.reset_device(device_index(device, optional=True))


# The numbers that torch.cuda has for the modes.
_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What an operator does that waits for a device: "default" (0) nothing, "warn" (1), "error" (2).

    It holds for all devices and threads. What was asked for, such as synchronize, is not told of.
    """
    mode = _SYNC_DEBUG_MODES.get(str(debug_mode), debug_mode)
    if mode not in _SYNC_DEBUG_MODES.values():
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )
    _C.set_sync_debug_mode(int(mode))


def get_sync_debug_mode() -> int:
    return int(_C.sync_debug_mode())


def init() -> None:
    """Says so when there is no device, or when this is a forked child; nothing else is needed.

    PyTorch calls it once, before it makes the first tensor of the device.
    """
    try:
        _C.init()
    finally:
        _record_drivers()


_lazy_init = init
_get_device_index = device_index


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    """torch.cuda queues such calls until it is initialized; here a device opens when it is used."""
    callable()


def is_initialized() -> bool:
    """Whether a device is open in this process."""
    return bool(_C.is_initialized())


def _is_in_bad_fork() -> bool:
    return bool(_C.is_in_bad_fork())


class device:
    """Context manager: makes a device current for the thread and restores the one before."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C.exchange_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _C.set_device(self.prev_idx)


class device_of(device):
    """As device, with the device of a tensor or storage; does nothing for one of another type."""

    def __init__(self, obj: Any) -> None:
        ours = obj.device.type == inside.privateuse1_name()
        super().__init__(obj.device.index if ours else -1)


def _exchange_device(device: int) -> int:
    return int(_C.exchange_device(device))


_maybe_exchange_device = _exchange_device


_known_properties = functools.cache(_C.device_properties)


def _properties(index: int) -> Any:
    return _known_properties(index)


def get_device_properties(device: DeviceLike = None) -> Any:
    """What the driver says of a device, without opening it; the same object for the same device."""
    return _properties(device_index(device, optional=True))


def get_device_name(device: DeviceLike = None) -> str:
    return str(get_device_properties(device).name)


def get_device_capability(device: DeviceLike = None) -> tuple[int, int]:
    """The vendor's version of the architecture: (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device: the kernels store bfloat16 and compute in float32, on every driver."""
    return is_available()


def load_driver(path: str) -> None:
    """Loads a driver library by its absolute path; its devices come after the others."""
    _C.load_driver(str(path))
    _record_drivers()
    _known_properties.cache_clear()  # the numbers of devices that nobody opened may have changed


def drivers() -> list[DriverInfo]:
    """The drivers that were loaded."""
    return [DriverInfo(*one) for one in _C.drivers()]


def refusals() -> list[Refusal]:
    """Drivers that were not taken, and why."""
    return [Refusal(*one) for one in _C.refusals()]


def devices() -> list[Any]:
    """The properties of every device, by index."""
    return [get_device_properties(i) for i in range(device_count())]


def statistics(device: DeviceLike = None) -> dict[str, int]:
    """Commands of a device since it was opened: launches, copies, copied_bytes, fills, ..."""
    return dict(_C.statistics(device_index(device, optional=True)))


def _get_generator(device: torch.device) -> torch.Generator:
    return _C.default_generator(device_index(device, optional=True))


def _inductor_backend_init() -> None:
    """Inductor calls it when it first compiles; before 2.15 it looks for Scheduling then."""
    from torch_graft.compiler import inductor

    inductor.refuse()


def __getattr__(name: str) -> Any:
    if name == "Scheduling" and inside.module_of("register_backend_for_device") in sys.modules:
        _inductor_backend_init()
    # Both change while the process runs: a driver may be loaded, a device opened.
    if name == "default_generators":
        return tuple(_C.default_generator(i) for i in range(device_count()))
    if name == "_initialized":
        return is_initialized()
    owner = inside.privateuse1_name()
    raise AttributeError(f"module 'torch.{owner}' has no attribute '{name}'")
