# python/torch_graft/device/snapshots.py: how device memory lies, in the form of torch.cuda.memory._snapshot().
"""Snapshots of chosen devices, whatever their names are."""

from __future__ import annotations

import os
import pickle
from typing import Any

from torch_graft import _C


def of(indices: list[int], augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """A snapshot of devices by index; their traces stand in the order of indices."""
    if augment_with_fx_traces:
        raise NotImplementedError("a snapshot has no FX traces: give augment_with_fx_traces=False")
    segments: list[dict[str, Any]] = []
    traces: list[list[dict[str, Any]]] = []
    for index in indices:
        more, events = _C.memory_snapshot(index)
        segments += more
        traces.append(events)
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {},
        "external_annotations": [],
    }


def segments_of(
    snapshot: dict[str, Any], mempool_id: tuple[int, int] | None
) -> list[dict[str, Any]]:
    """The segments of a snapshot, or those of one pool."""
    segments: list[dict[str, Any]] = snapshot["segments"]
    if mempool_id is None or tuple(mempool_id) == (0, 0):
        return segments
    return [one for one in segments if one["segment_pool_id"] == tuple(mempool_id)]


def write(snapshot: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """As torch's memory viewer takes it, a pickle."""
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)
