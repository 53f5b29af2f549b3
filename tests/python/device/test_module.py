# tests/python/device/test_module.py: torch.graft beside torch.cuda, name by name.
"""module.toml lists each difference with its reason: a new one fails, and one that is gone."""

from __future__ import annotations

import collections
import inspect
import types
from pathlib import Path
from typing import Any

import pytest
import tomllib
import torch

from sandbox import NAME

graft: Any = torch.get_device_module(NAME)
PARTS = ("", "amp", "graphs", "memory", "random")
TYPES = ("cuda", NAME)  # device-specific
# Names with an underscore that packages and PyTorch's own tests call.
PRIVATE = {
    "": ("_exchange_device", "_get_device_index", "_get_generator", "_get_rng_state_offset",
         "_is_in_bad_fork", "_lazy_call", "_lazy_init", "_maybe_exchange_device", "_sleep",
         "_set_rng_state_offset", "_set_stream_by_id"),
    "memory": ("_dump_snapshot", "_record_memory_history", "_set_allocator_settings", "_snapshot"),
}  # fmt: skip


def surface(module: Any, part: str) -> set[str]:
    """What users call: the names of __all__ and the module's own functions and classes."""
    homes = (f"torch.cuda.{part}".rstrip("."), f"torch_graft.device.{part or 'accelerator'}")
    own = {
        name for name, one in vars(module).items()
        if not name.startswith("_") and (inspect.isfunction(one) or inspect.isclass(one))
        and one.__module__ in homes
    }  # fmt: skip
    listed = set(getattr(module, "__all__", ()))
    return {*own, *listed, *(name for name in PRIVATE.get(part, ()) if hasattr(module, name))}


def parameters(function: Any) -> str | None:
    """Names, kinds and defaults; the name of the device type as a default is the current device."""
    if isinstance(function, types.ModuleType):
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    plain = [
        one.replace(
            annotation=inspect.Parameter.empty,
            default=None if one.default in TYPES else one.default,
        )
        for one in signature.parameters.values()
    ]
    return str(inspect.Signature(plain))


def differences() -> dict[str, str]:
    found: dict[str, str] = {}
    for part in PARTS:
        theirs = getattr(torch.cuda, part) if part else torch.cuda
        ours = getattr(graft, part) if part else graft
        names, own = surface(theirs, part), surface(ours, part)
        for name in sorted(names | own):
            path = f"{part}.{name}" if part else name
            if name not in names:
                found[path] = "added"
            elif not hasattr(ours, name):
                found[path] = "missing"
            else:
                first, second = parameters(getattr(theirs, name)), parameters(getattr(ours, name))
                if first != second:
                    found[path] = f"{second or 'another type'} for {first or 'another type'}"
    return found


def listed() -> dict[str, str]:
    table = tomllib.loads(Path(__file__).with_name("module.toml").read_text())
    rows = [(name, row) for row in table["difference"] for name in row["names"]]
    twice = [name for name, count in collections.Counter(n for n, _ in rows).items() if count > 1]
    assert not twice, f"listed twice: {twice}"
    assert all(len(row["why"]) > 10 for _, row in rows)
    return {name: row["what"] for name, row in rows}


@pytest.mark.every_run
def test_each_difference_is_listed_with_its_reason() -> None:
    found, known = differences(), listed()
    new = {name: what for name, what in found.items() if known.get(name) != what}
    gone = {name: what for name, what in known.items() if found.get(name) != what}
    assert not new, f"not in module.toml: {new}"
    assert not gone, f"no longer so, but in module.toml: {gone}"


def test_bfloat16_is_supported_where_there_is_a_device() -> None:
    assert graft.is_bf16_supported() is True
    assert graft.is_bf16_supported(including_emulation=False) is True


@pytest.mark.parametrize("fraction", [1, "0.5", None])
def test_a_fraction_is_a_float(fraction: Any) -> None:
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        graft.set_per_process_memory_fraction(fraction)


@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_a_fraction_lies_between_0_and_1(fraction: float) -> None:
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        graft.set_per_process_memory_fraction(fraction)


def test_no_kernel_reads_the_memory_of_another_device() -> None:
    assert graft.can_device_access_peer(0, 1) is True
    assert graft.can_device_access_peer(None, f"{NAME}:1") is True
    assert graft.can_device_access_peer(1, 1) is False
    with pytest.raises(AssertionError, match="Invalid device id"):
        graft.can_device_access_peer(99, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        graft.can_device_access_peer(0, 99)


def test_figures_as_a_nested_dict() -> None:
    x = torch.ones(1000, device=NAME)
    nested, flat = graft.memory_stats_as_nested_dict(), graft.memory_stats()
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"]
    assert nested["num_ooms"] == flat["num_ooms"]
    assert flat["allocated_bytes.all.current"] >= x.nbytes
    free, total = graft.mem_get_info()
    assert graft.device_memory_used() == total - free


def test_a_snapshot_has_the_segments_and_the_other_form_the_traces() -> None:
    x = torch.ones(1000, device=NAME)
    segments = graft.memory_snapshot()
    assert any(
        one["address"] <= x.data_ptr() < one["address"] + one["total_size"] for one in segments
    )
    assert graft.memory._snapshot()["segments"] == segments
    pool = graft.MemPool()
    with graft.use_mem_pool(pool):
        y = torch.ones(2000, device=NAME)
    [segment] = graft.memory_snapshot(pool.id)
    assert segment["address"] <= y.data_ptr() < segment["address"] + segment["total_size"]
    assert pool.snapshot() == [segment]


def test_a_stream_is_current_within_its_context() -> None:
    before, side = graft.current_stream(), graft.Stream()
    with graft.StreamContext(side):
        assert graft.current_stream() == side
    with graft.StreamContext(None):
        assert graft.current_stream() == before
