"""What devices declare or are found to do, and the decorators that ask for it."""

from __future__ import annotations

import unittest
from types import SimpleNamespace
from typing import Any
from unittest import SkipTest

import pytest
import torch

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.testing import (
    add_tests,
    capabilities,
    declared_dtypes,
    instantiate_device_type_tests,
)
from torch_conformance.testing import items as ours
from vendor_file import DEVICES, ran, scope


@pytest.mark.parametrize("device", DEVICES)
def test_capabilities_of_the_devices_here(device):
    found = capabilities(f"{device}:0")
    assert found is capabilities(device)
    assert found.supports(torch.float32)
    assert found.count >= 1
    assert found.dtypes([torch.int64, torch.float32]) == [torch.int64, torch.float32]
    own = device != "cpu"
    assert found.source == ("declared by torch.accelerator" if own else "tried")
    assert found.streams is found.timed_events is found.memory_statistics is own
    assert found.generator
    assert found.distributed == (device if own else "gloo")


def test_undeclared_dtypes_make_no_items(monkeypatch):
    found = ours.Capabilities("cpu")
    found.module = SimpleNamespace(supported_dtypes=lambda: [torch.int32])
    monkeypatch.setattr(ours, "capabilities", lambda device: found)
    (added,) = add_tests(scope(), "cpu", ops=["add"], aspects=["forward"])
    assert unittest.defaultTestLoader.getTestCaseNames(added) == ["test_forward_add_cpu_int32"]
    assert found.source == "declared by torch.cpu.supported_dtypes()"


def test_a_dtype_that_comes_back_changed_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: self.view(torch.uint8) * 0)
    assert not ours.Capabilities("cpu").supports(torch.uint16)


class Needs:
    """Methods of a class that instantiate_device_type_tests makes one of for each device."""

    @ours.requires_fp64
    def test_fp64(self, device):
        assert torch.ones(1, dtype=torch.float64, device=device).sum() == 1

    @ours.requires_dtype(torch.uint64, torch.float32)
    def test_uint64(self, device):
        pass

    @ours.requires_streams
    def test_streams(self, device):
        torch.Stream(device).synchronize()

    @ours.requires_autocast(torch.bfloat16)
    def test_autocast(self, device):
        pass

    @ours.requires_devices(1000)
    def test_thousand(self, device):
        pass

    @ours.requires_distributed
    def test_distributed(self, device):
        pass

    @declared_dtypes("floating", "complex")
    @ours.requires_generator
    def test_dtypes(self, device, dtype):
        assert torch.rand(3, device=device, dtype=dtype).dtype == dtype

    @ours.requires("the colour green", lambda found: False)
    def test_never(self, device):
        raise AssertionError


def lowers(device):
    with torch.autocast(device, torch.bfloat16):
        return (torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)).itemsize == 2


def test_decorators_ask_for_capabilities():
    from torch.testing._internal.common_utils import TestCase

    members = {k: v for k, v in vars(Needs).items() if k.startswith("test_")}
    where: dict[str, Any] = {**scope(), "Needs": type("Needs", (TestCase,), members)}
    instantiate_device_type_tests(where["Needs"], where, only_for=tuple(DEVICES))
    for device in DEVICES:
        found = ran(*(v for k, v in where.items() if k == f"Needs{device.upper()}"))
        dtypes = [d for d in capabilities(device).dtypes() if d.is_floating_point or d.is_complex]
        assert len(dtypes) >= 5
        for dtype in dtypes:
            assert found.pop(f"test_dtypes_{device}_{cases.dtype_name(dtype)}") == ""
        shown = {k.removeprefix("test_").removesuffix(f"_{device}"): v for k, v in found.items()}
        absent = f"which '{device}' does not have"
        own = device != "cpu"
        assert shown == {
            "fp64": "",
            "uint64": f"needs the dtype uint64, float32, {absent}" if own else "",
            "streams": "" if own else f"needs streams, {absent}",
            "autocast": "" if lowers(device) else f"needs autocast to bfloat16, {absent}",
            "thousand": f"needs 1000 devices, {absent}",
            "distributed": "",
            "never": f"needs the colour green, {absent}",
        }


@ours.requires_dtype(torch.float32)
def needs_device(device):
    return device


def test_decorators_work_on_plain_functions():
    assert needs_device("cpu") == needs_device(device="cpu") == "cpu"
    with pytest.raises(SkipTest, match="needs streams, which 'cpu' does not have"):
        ours.requires_streams(needs_device)("cpu")
    with pytest.raises(SetupError, match="needs an argument `device`"):
        ours.requires_streams(lambda: None)()


def test_unknown_kind_of_dtype():
    with pytest.raises(SetupError, match="no kind of dtype is called \\['round'\\]"):
        declared_dtypes("round")
