# python/torch_graft/device/memory.py: device memory: figures, limits, a snapshot.
"""The device's memory; the figures are those of torch.accelerator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import torch

from torch_graft import _C
from torch_graft.device import snapshots
from torch_graft.device.indices import DeviceLike, device_index


def _index(device: DeviceLike) -> int:
    return device_index(device, optional=True)


def empty_cache() -> None:
    """Gives memory that nobody uses back to the driver, on every device."""
    torch.accelerator.empty_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    return torch.accelerator.memory_stats(_index(device))


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes in tensors."""
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes held from the driver, in tensors or in the cache."""
    return torch.accelerator.memory_reserved(_index(device))


def max_memory_reserved(device: DeviceLike = None) -> int:
    return torch.accelerator.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes of the device."""
    free, total = _C.memory_info(_index(device))
    return free, total


def get_allocator_backend() -> str:
    """The name of PyTorch's own caching allocator for it: no other can be chosen."""
    return "native"


def device_memory_used(device: DeviceLike = None) -> int:
    """Bytes of the device that are not free, whoever holds them."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Takes at most this share of the device's memory from now on; 1 lifts the limit."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _C.set_memory_fraction(_index(device), fraction)


def caching_allocator_alloc(
    size: int, device: DeviceLike = None, stream: torch.Stream | None = None
) -> int:
    """Takes memory for other libraries; its address. It is used in the order of the stream."""
    index = _index(device)
    stream = torch.accelerator.current_stream(index) if stream is None else stream
    return int(_C.allocate(index, size, stream.stream_id))


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back what caching_allocator_alloc took."""
    _C.free(mem_ptr)


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The share of the device's memory that may be taken; 1 without a limit."""
    return float(_C.memory_fraction(_index(device)))


def host_memory_stats() -> dict[str, int]:
    """Figures of pinned host memory, of all devices together; torch.cuda has the same names.

    active_* count what tensors hold, allocat* also what is kept for reuse. How long the driver took
    is not measured.
    """
    return dict(_C.host_memory_stats())


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """As memory_stats, with a dict for each figure: stats["allocated_bytes"]["all"]["peak"]."""
    return _nested(memory_stats(device))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """As host_memory_stats, with a dict for each figure."""
    return _nested(host_memory_stats())


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


def reset_peak_host_memory_stats() -> None:
    _C.reset_host_memory_peak()


def reset_accumulated_host_memory_stats() -> None:
    _C.reset_host_memory_sums()


def record_memory_history(
    enabled: Literal["state", "all"] | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "python",
    max_entries: int = 2**20,
    device: DeviceLike = None,
) -> None:
    """Records where memory goes, for _snapshot: on one device, or on all of them.

    enabled: "all" keeps the last max_entries allocations and frees, "state" only the stack of each
    block that is held, None stops. context: None keeps no stacks (any other value keeps them all).
    stacks: of Python, or "all" with those of C++, which are slower.
    """
    for name, value, allowed in (
        ("enabled", enabled, ("state", "all", None)), ("context", context, ("state", "alloc", "all", None)),
        ("stacks", stacks, ("python", "all")),
    ):  # fmt: skip
        if value not in allowed:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}"
            )
    entries = min(max_entries, 2**40) if enabled == "all" else 0
    kept = stacks if enabled is not None and context is not None else ""
    for index in _indices(device):
        _C.record_memory_history(index, entries, kept)


def _indices(device: DeviceLike) -> list[int]:
    return list(range(torch.accelerator.device_count())) if device is None else [_index(device)]


def memory_snapshot(
    mempool_id: tuple[int, int] | None = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """How memory lies: the segments of every device, or of one pool, with their blocks.

    include_traces changes nothing: what happened to the memory is told by _snapshot.
    """
    return snapshots.segments_of(_snapshot(), mempool_id)


def _snapshot(device: DeviceLike = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """How memory lies ("segments") and, when recorded, what happened to it ("device_traces").

    The form is that of torch.cuda.memory._snapshot(): its viewer and the functions of
    torch.cuda._memory_viz read it. Traces are listed by device; a device that was not used has none.
    """
    found = snapshots.of(_indices(device), augment_with_fx_traces)
    if device is not None:
        before: list[Any] = [[] for _ in range(_index(device))]
        found["device_traces"] = before + found["device_traces"]
    return found


def dump_memory_snapshot(path: str | os.PathLike[str] = "snapshot.pickle") -> None:
    """Writes _snapshot() as torch's memory viewer takes it, a pickle."""
    _dump_snapshot(path)


def _dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """dump_memory_snapshot under the name and with the parameters of torch.cuda.memory."""
    snapshots.write(_snapshot(augment_with_fx_traces=augment_with_fx_traces), filename)


def attach_out_of_memory_observer(observer: Callable[[int, int, int, int], None]) -> None:
    """Calls observer(device, bytes wanted, bytes in all, bytes free) when an allocation fails.

    Before the exception, on its thread. What the observer raises is shown and dropped.
    """
    _C.observe_out_of_memory(observer)


# What scripts for torch.cuda.memory call.
_record_memory_history = record_memory_history


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The figures as a table; abbreviated leaves the pools out."""
    stats = memory_stats(device)
    pools = ["all"] if abbreviated else ["all", "small_pool", "large_pool"]
    rows = [("allocated", "allocated_bytes"), ("reserved", "reserved_bytes"),
            ("active", "active_bytes"), ("unused in split", "inactive_split_bytes")]  # fmt: skip
    lines = [f"{'MiB':<30}{'now':>12}{'peak':>12}{'taken':>14}{'given back':>14}"]
    for title, key in rows:
        for pool in pools:
            four = [stats.get(f"{key}.{pool}.{part}", 0) / 2**20
                    for part in ("current", "peak", "allocated", "freed")]  # fmt: skip
            name = title if pool == "all" else f"  {pool.replace('_', ' ')}"
            lines.append("{:<30}{:>12.2f}{:>12.2f}{:>14.2f}{:>14.2f}".format(name, *four))
    lines.append(f"out of memory {stats.get('num_ooms', 0)} times, "
                 f"cache emptied for room {stats.get('num_alloc_retries', 0)} times")  # fmt: skip
    return "\n".join(lines)
