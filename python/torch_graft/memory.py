# python/torch_graft/memory.py: device memory: figures, limits, a snapshot.
"""The memory functions of torch.graft; the figures are those of torch.accelerator."""

from __future__ import annotations

from typing import Any

import torch

from torch_graft import _C
from torch_graft.indices import DeviceLike, device_index


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


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Takes at most this share of the device's memory from now on; 1 lifts the limit."""
    _C.set_memory_fraction(_index(device), float(fraction))


def record_memory_history(entries: int = 10_000, device: DeviceLike = None) -> None:
    """Keeps the last events of the allocator for memory_snapshot; 0 stops."""
    _C.record_memory_history(_index(device), entries)


def memory_snapshot(device: DeviceLike = None) -> dict[str, list[dict[str, Any]]]:
    """How memory lies ("segments") and, when recorded, what happened to it ("history")."""
    segments, history = _C.memory_snapshot(_index(device))
    block = ("address", "size", "requested_size", "state")
    event = ("action", "address", "size", "stream", "time_ns")
    return {
        "segments": [
            {"address": address, "total_size": size, "stream": stream,
             "segment_type": "large" if large else "small",
             "blocks": [dict(zip(block, one, strict=True)) for one in blocks]}
            for address, size, stream, large, blocks in segments
        ],
        "history": [dict(zip(event, one, strict=True)) for one in history],
    }  # fmt: skip


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
