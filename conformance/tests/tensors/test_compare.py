# conformance/tests/tensors/test_compare.py: differences are seen, and what two right devices may differ in is not one.
from __future__ import annotations

import collections
import gc
import weakref

import pytest
import torch

from torch_conformance.cells import cases
from torch_conformance.suites import operators
from torch_conformance.tensors import compare

Pair = collections.namedtuple("Pair", "a b")


def difference(actual, expected, **allowed):
    return compare.difference(actual, expected, allowed)


@pytest.mark.parametrize(
    "value",
    [torch.tensor([1.0, float("nan"), float("inf")]), torch.ones(2, 0), torch.tensor(True),
     torch.ones(2, dtype=torch.uint16), torch.ones(2).to(torch.float8_e4m3fn),
     torch.eye(2).to_sparse(), (torch.ones(2), [3, {"x": torch.zeros(1)}]), None, 2.5, "x",
     Pair(torch.ones(1), 2), torch.complex(torch.ones(2), torch.ones(2)).conj()],
)  # fmt: skip
def test_equal_values_have_no_difference(value):
    assert difference(value, compare.mapped(value, torch.clone)) is None


@pytest.mark.parametrize(
    ("actual", "expected", "word"),
    [
        (torch.ones(2), torch.ones(3), "shape"),
        (torch.ones(2), torch.ones(2).double(), "dtype"),
        (torch.eye(2), torch.eye(2).to_sparse(), "layout"),
        (torch.ones(2), torch.tensor([1.0, 1.1]), "not close"),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), "not equal"),
        (torch.ones(2, dtype=torch.uint64), torch.zeros(2, dtype=torch.uint64), "not equal"),
        (torch.tensor([float("nan")]), torch.ones(1), "not close"),
        ((torch.ones(1),), (torch.ones(1), torch.ones(1)), "instead of"),
        ([torch.ones(1), torch.zeros(1)], [torch.ones(1), torch.ones(1)], "result[1]"),
        ({"a": 1}, {"b": 1}, "instead of"),
        (1, torch.ones(1), "instead of a tensor"),
        (3, 4, "instead of"),
    ],
)
def test_differences_are_named(actual, expected, word):
    assert word in (difference(actual, expected) or "")


def test_the_databases_tolerance_widens_the_default():
    info = cases.entries("op")["logaddexp"]
    found = compare.tolerances(info, "cpu")
    default = compare.default_tolerance(torch.float16)
    assert all(t >= (0, 0) for t in found.values())
    assert found.get(torch.float16, default).absolute >= default.absolute


def far(actual, expected, exact):
    return not compare.no_farther(actual, expected, exact, {})


def test_a_result_nearer_to_float64_than_the_cpu_is_right():
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    cpu = torch.tensor([1.001, 2.0])
    assert not far(exact.float(), cpu, exact)
    assert far(torch.tensor([1.0, 2.1]), cpu, exact)
    assert far(torch.tensor([float("nan"), 2.0]), cpu, exact)


def test_an_error_in_large_elements_excuses_none_in_small_ones():
    exact = torch.tensor([1.0, 1e8], dtype=torch.float64)
    cpu = torch.tensor([1.0, 1.001e8])
    assert far(torch.tensor([1.5, 1e8]), cpu, exact)


def test_the_cpu_s_errors_for_other_numbers_count():
    """A sum of 200 terms of up to 80: the CPU's error at one of a few elements is small by luck."""
    exact = torch.tensor([3.0, 100.0], dtype=torch.float64)
    cpu, ours = torch.tensor([3.0, 100.0]), torch.tensor([3.0 + 2e-5, 100.0])
    other = torch.tensor([4.0, 90.0], dtype=torch.float64)
    assert far(ours, cpu, exact)
    assert compare.no_farther(ours, cpu, exact, {}, [(other.float() + 1e-5, other)])
    large = [(other.float() + torch.tensor([0.0, 1e-2]), other)]
    assert not compare.no_farther(ours, cpu, exact, {}, large)
    assert not compare.no_farther(ours, cpu, exact, {}, [(other.float(), other)] * 3)


def test_shapes_and_dtypes_alone():
    assert compare.metadata_difference(torch.ones(2), torch.zeros(2)) is None
    assert "shape" in (compare.metadata_difference(torch.ones(2), torch.zeros(3)) or "")
    assert compare.metadata_difference((torch.ones(2), 1), (torch.zeros(2), 1)) is None


def test_the_exact_gradients_start_from_the_rounded_numbers():
    def double(inputs):
        return inputs[0] * 2

    half = torch.ones(5, dtype=torch.float16, requires_grad=True)
    wide = torch.ones(5, dtype=torch.float64, requires_grad=True)
    found, given = operators.gradients(double, (half,), lambda result: result)
    exact, again = operators.gradients(double, (wide,), lambda result: result, given)
    assert again[0].dtype == torch.float64
    assert again[0].equal(given[0].double())
    assert exact[0].equal(found[0].double())


def test_a_difference_keeps_no_tensor() -> None:
    """Without a garbage collection the device's memory is free again."""
    gc.disable()
    try:
        given = [torch.zeros(2)]
        gone = weakref.ref(given[0])
        assert difference(given, [torch.ones(2)]) is not None
        given.clear()
        assert gone() is None
    finally:
        gc.enable()
