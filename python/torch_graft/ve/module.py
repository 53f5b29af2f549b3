# python/torch_graft/ve/module.py: the module torch.ve.
"""Devices, streams, memory and random numbers of torch.device("ve"), with the names of torch.cuda."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType, SimpleNamespace, TracebackType
from typing import Any

import torch

from torch_graft import _C
from torch_graft.device import accelerator, snapshots
from torch_graft.device import graphs as _graphs
from torch_graft.device import memory as _memory
from torch_graft.device import random as _random
from torch_graft.device.indices import DeviceLike
from torch_graft.ve.carried import (
    NAME,
    carried,
    inner_current,
    inner_index,
    inner_indices,
    slot_index,
)

_TYPE = 16  # c10::DeviceType::VE, for which PyTorch has no name in Python


def is_available() -> bool:
    """Whether there is a device. Opens none."""
    return device_count() > 0


def device_count() -> int:
    """Number of devices that GRAFT_VE_DEVICES names. Opens none."""
    return int(_C.ve.device_count())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a device: the kernels store bfloat16 and compute in float32, on every driver."""
    return is_available()


def current_device() -> int:
    return int(_C.ve.current_device())


def set_device(device: DeviceLike) -> None:
    """Makes a device current for this thread."""
    _C.ve.set_device(slot_index(device))


def init() -> None:
    """Says so when there is no device, or when this is a forked child; nothing else is needed."""
    with inner_current():
        _C.init()


def is_initialized() -> bool:
    return bool(_C.is_initialized())


class device:
    """Context manager: makes a device current for the thread and restores the one before."""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = slot_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C.ve.exchange_device(self.idx)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _C.ve.set_device(self.prev_idx)


class device_of(device):
    """As device, with the device of a tensor or storage; does nothing for one of another type."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == NAME else -1)


def _properties(index: int) -> Any:
    return accelerator._properties(inner_index(index))


def get_device_properties(device: DeviceLike = None) -> Any:
    """What the driver says of a device; the same object for the same device."""
    return _properties(slot_index(device))


def devices() -> list[Any]:
    """The properties of every device, by index."""
    return [get_device_properties(index) for index in range(device_count())]


def Stream(device: DeviceLike = None, priority: int = 0) -> torch.Stream:
    return torch.Stream(device=f"{NAME}:{slot_index(device)}", priority=priority)


def Event(
    enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
) -> torch.Event:
    return torch.Event(
        device=NAME, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
    )


def _stream_of(stream_id: int, index: int) -> torch.Stream:
    return torch.Stream(stream_id=stream_id, device_index=index, device_type=_TYPE)


def current_stream(device: DeviceLike = None) -> torch.Stream:
    index = slot_index(device)
    return _stream_of(_C.ve.current_stream_id(index), index)


def default_stream(device: DeviceLike = None) -> torch.Stream:
    index = slot_index(device)
    return _stream_of(_C.default_stream_id(inner_index(index)), index)


def set_stream(stream: torch.Stream) -> None:
    """Makes a stream current on its device for this thread."""
    if stream.device.type != NAME:
        raise ValueError(f"Expected a stream of a {NAME} device, but got: {stream}")
    _C.ve.set_stream(stream.stream_id, stream.device_index)


class StreamContext:
    """Context manager: makes a stream and its device current; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device = device(self.stream.device)
        self._device.__enter__()
        self._before = current_stream(self.stream.device)
        set_stream(self.stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.stream is not None:
            set_stream(self._before)
            self._device.__exit__(kind, error, trace)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    """Makes the stream current that has these numbers, which torch.Stream tells."""
    _C.ve.set_stream(stream_id, device_index)


def synchronize(device: DeviceLike = None) -> None:
    """Waits for all work of a device; raises what failed meanwhile."""
    _C.synchronize(inner_index(device))


def Generator(device: DeviceLike = None) -> torch.Generator:
    """A new generator: torch.Generator(device="ve"), which PyTorch refuses."""
    return _C.ve.new_generator(slot_index(device))


def _get_generator(device: DeviceLike = None) -> torch.Generator:
    return _C.ve.default_generator(slot_index(device))


def manual_seed(seed: int) -> None:
    """Seeds the current device; does nothing where there is none."""
    seed = _random._checked(seed)
    if is_available():
        _get_generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds every device."""
    seed = _random._checked(seed)
    for index in range(device_count()):
        _get_generator(index).manual_seed(seed)


def seed() -> None:
    """Gives the current device a seed that nobody can foretell; does nothing where there is none."""
    if is_available():
        _get_generator().seed()


def seed_all() -> None:
    manual_seed_all(torch.Generator().seed())


initial_seed = carried(_random.initial_seed)
get_rng_state = carried(_random.get_rng_state)
set_rng_state = carried(_random.set_rng_state)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


@contextmanager
def graph(
    graph: torch.accelerator.Graph, pool: tuple[int, int] | None = None,
    stream: torch.Stream | None = None, capture_error_mode: str = "default",
) -> Iterator[None]:  # fmt: skip
    """Captures what the block does on a stream of the current device into graph."""
    with inner_current(), _graphs.graph(graph, pool, _inner_stream(stream), capture_error_mode):
        yield


def _inner_stream(stream: torch.Stream | None) -> torch.Stream | None:
    if stream is None:
        return None
    index = inner_index(stream.device)
    kind = torch.accelerator.current_stream(index).device_type
    return torch.Stream(stream_id=stream.stream_id, device_index=index, device_type=kind)


def record_memory_history(
    enabled: Any = "all", context: Any = "all", stacks: Any = "python", max_entries: int = 2**20,
    device: DeviceLike = None,
) -> None:  # fmt: skip
    """As torch.cuda.memory's, on one device, or on all of them."""
    for index in inner_indices() if device is None else [inner_index(device)]:
        _memory.record_memory_history(enabled, context, stacks, max_entries, index)


_record_memory_history = record_memory_history


def _snapshot(device: DeviceLike = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """As torch.cuda.memory's, with the slot's numbers of devices."""
    whole = snapshots.of([], augment_with_fx_traces)
    for index in range(device_count()):
        if device is not None and index != slot_index(device):
            whole["device_traces"].append([])
            continue
        one = snapshots.of([inner_index(index)])
        whole["segments"] += [{**segment, "device": index} for segment in one["segments"]]
        whole["device_traces"] += one["device_traces"]
    return whole


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """As torch.cuda.memory's, with the slot's numbers of devices."""
    return snapshots.segments_of(_snapshot(), mempool_id)


def _dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    snapshots.write(_snapshot(augment_with_fx_traces=augment_with_fx_traces), filename)


def dump_memory_snapshot(path: str | os.PathLike[str] = "snapshot.pickle") -> None:
    _dump_snapshot(path)


def attach_out_of_memory_observer(observer: Callable[[int, int, int, int], None]) -> None:
    """As torch.cuda.memory's, for the slot's devices."""

    def of_the_slot(device: int, *bytes_: int) -> None:
        index = _C.ve.index_of(device)
        if index >= 0:
            observer(index, *bytes_)

    _memory.attach_out_of_memory_observer(of_the_slot)


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """False: no kernel reads another device's memory. Copies work between all of them."""
    for index, which in ((slot_index(device), "device"), (slot_index(peer_device), "peer device")):
        if index < 0 or index >= device_count():
            raise AssertionError(f"Invalid {which} id")
    return False


def _exchange_device(device: int) -> int:
    return int(_C.ve.exchange_device(device))


_maybe_exchange_device = _exchange_device
_lazy_init = init
_lazy_call = accelerator._lazy_call
_is_in_bad_fork = accelerator._is_in_bad_fork
_get_device_index = slot_index
_utils = SimpleNamespace(_get_device_index=slot_index)


# What holds for the process, whatever its devices are called, is torch.graft's own.
_SHARED = frozenset((
    "DeviceProperties", "Graph", "MemPool", "OutOfMemoryError",
    "caching_allocator_delete", "drivers", "empty_cache", "fallback", "get_allocator_backend",
    "get_amp_supported_dtype", "get_sync_debug_mode", "graph_pool_handle", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "load_driver", "refusals",
    "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "set_sync_debug_mode",
))  # fmt: skip

_PARTS = ("amp", "graphs", "memory", "random", "streams")


def _counterpart(name: str, ours: Any) -> Any:
    """The slot's value for a name of accelerator.py."""
    if name in globals():
        return globals()[name]
    return carried(ours) if isinstance(ours, FunctionType) and name not in _SHARED else ours


def _part(of: ModuleType) -> ModuleType:
    """torch.ve.<part> for a part of accelerator.py."""
    made = ModuleType(of.__name__, of.__doc__)
    for name, ours in vars(of).items():
        own = getattr(ours, "__module__", None) == of.__name__ and name[:2] != "__"
        if own or name in getattr(of, "__all__", ()):
            vars(made)[name] = _counterpart(name, ours)
    named = getattr(of, "__all__", sorted(name for name in vars(made) if name[0] != "_"))
    vars(made)["__all__"] = named
    return made


def _complete() -> None:
    for name in (*accelerator.__all__, "_get_rng_state_offset", "_set_rng_state_offset"):
        if name not in _PARTS:
            globals()[name] = _counterpart(name, getattr(accelerator, name))
    for name in _PARTS:
        globals()[name] = _part(getattr(accelerator, name))
    # PyTorch has no autocast key for the slot: torch.autocast of torch.graft's type holds for it.
    for name in ("autocast", "custom_bwd", "custom_fwd"):
        vars(globals()["amp"])[name] = getattr(accelerator.amp, name)
    own = {"_type": staticmethod(lambda: NAME), "__doc__": accelerator.amp.GradScaler.__doc__,
           "__module__": f"torch.{NAME}.amp"}  # fmt: skip
    vars(globals()["amp"])["GradScaler"] = type("GradScaler", (accelerator.amp.GradScaler,), own)


_complete()
__all__ = [*accelerator.__all__, "Generator"]


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return tuple(_get_generator(index) for index in range(device_count()))
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.{NAME}' has no attribute '{name}'")
