"""torch.ve: every function of torch.graft, and one clear error where there is no device."""

from __future__ import annotations

import inspect
import types
from typing import Any

import pytest
import torch

from torch_graft import _C

PARTS = ["", "amp", "graphs", "memory", "random", "streams"]


def parameters(function: Any) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    plain = [
        one.replace(
            annotation=inspect.Parameter.empty,
            kind=either if one.kind == inspect.Parameter.POSITIONAL_ONLY else one.kind,
        )
        for one in signature.parameters.values()
    ]
    return str(inspect.Signature(plain))


@pytest.mark.parametrize("part", PARTS)
def test_has_every_function_of_graft_with_its_parameters(part: str) -> None:
    theirs = getattr(torch.graft, part) if part else torch.graft
    ours = getattr(torch.ve, part) if part else torch.ve
    own = {name for name, one in vars(theirs).items()
           if isinstance(one, types.FunctionType) and one.__module__ == f"torch_graft.device.{part or 'accelerator'}"
           and not name.startswith("_")}  # fmt: skip
    names = sorted({*own, *getattr(theirs, "__all__", ())})
    assert len(names) >= 4
    assert [name for name in names if not hasattr(ours, name)] == []
    if part == "":
        assert set(ours.__all__) == {*theirs.__all__, "Generator"}
    other = {
        name: (parameters(getattr(ours, name)), parameters(getattr(theirs, name)))
        for name in names
        if parameters(getattr(theirs, name)) not in (None, parameters(getattr(ours, name)))
    }
    assert other == {}


def test_functions_tell_of_the_slots_devices(ve: Any) -> None:
    assert ve.is_available()
    assert ve.device_count() == 2
    assert len(ve.devices()) == 2
    assert ve.get_device_properties(1) is ve.devices()[1]
    assert ve.get_device_name("ve:1") == ve.devices()[1].name
    assert ve.get_device_capability() == (ve.devices()[0].major, ve.devices()[0].minor)
    assert ve.statistics(0)["launches"] >= 0
    assert torch.get_device_module("ve") is ve
    assert not ve.can_device_access_peer(0, 1)
    ve.init()
    assert ve.is_initialized()


def test_current_device(ve: Any) -> None:
    assert ve.current_device() == 0
    with ve.device(1):
        assert ve.current_device() == 1
        assert torch.ones(1, device="ve").device == torch.device("ve", 1)
        with ve.device_of(torch.ones(1, device="ve:0")):
            assert ve.current_device() == 0
        with ve.device_of(torch.ones(1)):
            assert ve.current_device() == 1
    assert ve.current_device() == 0
    ve.set_device("ve:1")
    assert ve.current_device() == 1


def test_the_current_device_of_graft_is_another(ve: Any) -> None:
    before = _C.current_device()
    with ve.device(1):
        assert _C.current_device() == before
        ve.memory_stats()
        assert _C.current_device() == before


@pytest.mark.parametrize("bad", ["cpu", "graft:0", torch.device("cpu")])
def test_takes_devices_of_the_slot_alone(ve: Any, bad: Any) -> None:
    with pytest.raises(ValueError, match="Expected a ve device, but got"):
        ve.set_device(bad)
    with pytest.raises(ValueError, match="Expected a ve device, but got"):
        ve.memory_allocated(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda ve: ve.set_device(7), lambda ve: ve.synchronize(7), lambda ve: ve.memory_stats(7),
        lambda ve: ve.get_device_properties(7), lambda ve: torch.ones(2, device="ve:7"),
        lambda ve: ve.current_stream(7), lambda ve: ve.Generator(7), lambda ve: ve.Stream(7),
        lambda ve: ve.device(7).__enter__(),
    ],
)  # fmt: skip
def test_an_index_out_of_range_is_told_of(ve: Any, call: Any) -> None:
    with pytest.raises(RuntimeError, match="there is no device ve:7: 2 devices were found"):
        call(ve)


def test_without_devices_every_call_says_the_same(python: Any) -> None:
    python(
        """
        ve = torch.ve
        assert ve.is_available() is False and ve.device_count() == 0 and ve.devices() == []
        ve.manual_seed(1); ve.manual_seed_all(1); ve.seed(); ve.seed_all()
        assert ve.get_rng_state_all() == [] and ve.memory_snapshot() == []
        assert ve.is_bf16_supported() is False or torch.graft.is_available()
        calls = {
            "synchronize": (), "memory_stats": (), "memory_allocated": (), "memory_reserved": (),
            "max_memory_allocated": (), "max_memory_reserved": (), "reset_peak_memory_stats": (),
            "reset_accumulated_memory_stats": (), "mem_get_info": (), "device_memory_used": (),
            "memory_summary": (), "memory_stats_as_nested_dict": (), "get_device_properties": (),
            "get_device_name": (), "get_device_capability": (), "statistics": (),
            "current_stream": (), "default_stream": (), "Stream": (), "Generator": (), "init": (),
            "initial_seed": (), "get_rng_state": (), "set_rng_state": (torch.zeros(16, dtype=torch.uint8),),
            "set_device": (0,), "get_per_process_memory_fraction": (),
            "set_per_process_memory_fraction": (0.5,), "caching_allocator_alloc": (16,),
            "is_current_stream_capturing": (),
        }
        tensors = [lambda: torch.ones(2, device="ve"), lambda: torch.ones(2).ve(),
                   lambda: torch.nn.Linear(2, 2).ve(), lambda: torch.ones(2).untyped_storage().ve(),
                   lambda: torch.randn(2, device="ve"), lambda: torch.empty(0, device="ve:0")]
        wrong = {}
        for name, call in [*((n, lambda n=n, a=a: getattr(ve, n)(*a)) for n, a in calls.items()),
                           *(("tensor", one) for one in tensors)]:
            try:
                wrong[name] = repr(call())
            except RuntimeError as error:
                text = str(error)
                if "there is no device ve:0: 0 devices were found" not in text: wrong[name] = text
                assert "GRAFT_VE_DEVICES" in text
        assert wrong == {}, wrong
        """,
        GRAFT_VE_DEVICES=None,
    ).good()
