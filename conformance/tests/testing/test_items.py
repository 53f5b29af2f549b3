"""The runner's cells as pytest items: on this file's two devices, and as a vendor's file uses them."""

from __future__ import annotations

import sys
import unittest
from contextlib import nullcontext
from types import ModuleType
from typing import Any
from unittest import skip

import pytest

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.testing import add_tests, capabilities
from vendor_file import DEVICES, OTHERS, pytest_of, ran, scope

SUBSET: dict[str, Any] = {
    "ops": ["add", "nn.functional.relu", "sum", "nn.Linear", "SGD"],
    "dtypes": ["float32"],
    "aspects": ["forward", "backward", "step"],
}

# The items of this file: the same cells on each device.
for _device in DEVICES:
    add_tests(globals(), device=_device, **SUBSET)


@pytest.mark.parametrize("device", DEVICES)
def test_items_are_the_runners_cells(device):
    classes = [
        v for k, v in globals().items() if k.startswith("Test") and k.endswith(device.upper())
    ]
    found = {n for one in classes for n in unittest.defaultTestLoader.getTestCaseNames(one)}
    cells = cases.select(**SUBSET)
    expected = {f"test_{c.aspect}_{c.entry.replace('.', '_')}_{device}_{c.dtype}" for c in cells}
    assert found == expected
    assert len(found) == len(cells)
    assert all(issubclass(one, unittest.TestCase) for one in classes)


def test_items_go_through_upstreams_bases():
    from torch.testing._internal.common_device_type import CPUTestBase, PrivateUse1TestBase

    bases = dict(zip(DEVICES, (CPUTestBase, PrivateUse1TestBase), strict=False))
    for device, base in bases.items():
        assert issubclass(globals()[f"TestOp{device.upper()}"], base)


@pytest.mark.parametrize("device", OTHERS)
def test_what_a_vendor_set_for_the_base_holds(device):
    from torch.testing._internal.common_device_type import PrivateUse1TestBase
    from torch.testing._internal.opinfo.core import DecorateInfo

    mark = DecorateInfo(skip("not yet"), "TestOp", "test_forward")
    PrivateUse1TestBase.set_test_configs(
        op_allowlist=["add", "sub"], op_overrides={"sub": [mark]},
        test_exclusions={"TestOp": ["test_out"]},
    )  # fmt: skip
    try:
        added = add_tests(scope(), device, ops=["add", "sub", "mul"], dtypes=["int32"],
                          aspects=["forward", "inplace", "out"])  # fmt: skip
        found = ran(*added)
    finally:
        PrivateUse1TestBase.set_test_configs()
    assert {name: text for name, text in found.items() if text} == {
        f"test_forward_sub_{device}_int32": "not yet"
    }
    assert set(found) == {
        f"test_{aspect}_{op}_{device}_int32"
        for aspect in ("forward", "inplace")
        for op in ("add", "sub")
    }


@pytest.fixture
def faulty(monkeypatch):
    """A plugin around whose work some operators go wrong."""

    def on_device(cell: cases.Cell) -> Any:
        if cell.entry in ("mul", "exp"):
            raise RuntimeError("the multiplier is broken")
        return nullcontext()

    module = ModuleType("faulty_plugin")
    module.on_device = on_device  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faulty_plugin", module)
    return "faulty_plugin"


def _policy(device):
    """What the device's module does where an operator is left to the CPU; None if it cannot tell."""
    counter = getattr(capabilities(device).module, "fallback", None)
    return counter.policy() if counter is not None else None


@pytest.mark.parametrize("device", DEVICES)
def test_outcomes_become_outcomes_of_unittest(device, faulty, tmp_path):
    before = _policy(device)
    rows = tmp_path / "expectations.toml"
    rows.write_text(
        '[[expectation]]\nentry = "exp"\nkind = "xfail"\nreason = "the exponential is broken"\n'
        '[[expectation]]\nentry = "sub"\nkind = "skip"\nreason = "subtraction hangs"\n'
        '[[expectation]]\nentry = "neg"\nkind = "xfail"\nreason = "was broken once"\n'
    )
    ops = ["add", "sub", "mul", "exp", "neg"]
    added = add_tests(scope(), device, ops=ops, dtypes=["float64"], aspects=["forward"],
                      expectations=[rows], plugin=faulty)  # fmt: skip
    found = ran(*added)

    def of(op: str) -> str:
        return found[f"test_forward_{op}_{device}_float64"]

    assert of("add") == ""
    assert "error: " in of("mul")
    assert "the multiplier is broken" in of("mul")
    assert of("exp") == "xfail: the exponential is broken"
    assert of("sub") == "skip: subtraction hangs"
    assert of("neg").count("xpass: passes, though a row expects it to fail")
    assert _policy(device) == before


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"device": "nosuch"}, "import the package that adds it"),
        ({"device": "xpu"}, "there is no device of type 'xpu'"),
        ({"device": "cpu", "ops": ["adt"]}, "no entry is called 'adt'"),
        ({"device": "cpu", "dtypes": ["float33"]}, "no dtype is called 'float33'"),
        ({"device": "cpu", "plugin": "no_such_plugin"}, "no_such_plugin"),
        ({"device": "cpu", "shard": (3, 2)}, "1 <= k <= n"),
        ({"device": "cpu", "fallback": "never"}, "must be one of"),
        ({"device": "meta"}, "instantiate_device_type_tests knows"),
    ],
)
def test_wrong_arguments_say_what_to_do(given, part):
    with pytest.raises(SetupError, match=part):
        add_tests(scope(), **given)


def test_two_selections_in_one_file_need_a_prefix():
    where = scope()
    (first,) = add_tests(where, "cpu", ops=["add"], dtypes=["float32"], aspects=["forward"])
    with pytest.raises(SetupError, match=r"already has \['TestOpCPU'\]: .* prefix="):
        add_tests(where, "cpu", ops=["sub"], dtypes=["float32"], aspects=["forward"])
    (second,) = add_tests(where, "cpu", ops=["sub"], dtypes=["float32"], aspects=["forward"],
                          prefix="More")  # fmt: skip
    assert where["TestOpCPU"] is first
    assert where["TestMoreOpCPU"] is second


@pytest.mark.parametrize("device", OTHERS)
def test_file_of_a_vendor(device, tmp_path):
    """The cells and PyTorch's distributed cases: what a run prints, with the reasons of what skips."""
    source = f"""
        from torch_conformance.testing.distributed import add_distributed_tests
        from torch_conformance.testing import add_tests
        add_tests(globals(), device="{device}", ops=["nn.functional.relu", "Adam"], dtypes=["float32"])
        add_distributed_tests(globals(), world_size=2, tests=[
            "test_all_reduce_sum", "test_DistributedDataParallelCPU", "test_all_reduce_sum_cuda"])
    """
    last, output = pytest_of(tmp_path, source)
    assert " failed" not in last, output
    assert int(last.split(" passed")[0]) > 10
    assert "skip: not applicable: no sample of this kind" in output
    assert "CUDA is not available" in output


def test_missing_package_says_what_to_install(tmp_path):
    source = """
        import sys
        sys.modules["expecttest"] = None
        from torch_conformance.testing import add_tests
    """
    last, output = pytest_of(tmp_path, source)
    assert "1 error" in last
    assert "need the package 'expecttest', which is missing: pip install expecttest" in output
