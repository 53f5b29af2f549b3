# conformance/tests/suites/test_aspects.py: each aspect sees the fault that it is there for, and nothing in a right device.
from __future__ import annotations

import contextlib
import types

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from torch_conformance.cells.cases import Cell
from torch_conformance.cells.session import Session


class Kernel(TorchDispatchMode):
    """Lets a fault change the result of one ATen operator."""

    def __init__(self, name, fault):
        super().__init__()
        self.name, self.fault = name, fault

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return self.fault(result, args) if func.overloadpacket.__name__ == self.name else result


class Call(TorchFunctionMode):
    """Lets a fault stand in for one function of torch's Python interface."""

    def __init__(self, name, fault):
        super().__init__()
        self.name, self.fault = name, fault

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == self.name:
            return self.fault(func, args, kwargs)
        return func(*args, **kwargs)


def outcome(cell, mode=None):
    plugin = types.SimpleNamespace(on_device=lambda cell: mode or contextlib.nullcontext())
    return Session("cpu", plugin=plugin).run(cell)


def wrong(result, args):
    return result + 1


def wrong_where(condition):
    return lambda result, args: result + 1 if condition(args[0]) else result


def without_out(func, args, kwargs):
    return func(*args, **{k: v for k, v in kwargs.items() if k != "out"})


def replaced_out(func, args, kwargs):
    result = without_out(func, args, kwargs)
    if "out" in kwargs:
        kwargs["out"].set_(result.clone(memory_format=torch.contiguous_format))
    return result


def copied(func, args, kwargs):
    return func(*args, **kwargs).clone()


def swallowed(func, args, kwargs):
    with contextlib.suppress(Exception):
        return func(*args, **kwargs)
    return torch.ones(1)


def full_precision(func, args, kwargs):
    with torch.autocast("cpu", enabled=False):
        return func(*args, **kwargs)


def shifted_in_place(result, args):
    torch._foreach_add_(args[0], 1)


OP = "op"
FAULTS = {
    "forward": (Cell(OP, "exp", "float32", "forward"), Kernel("exp", wrong), "not close"),
    "backward": (Cell(OP, "exp", "float32", "backward"), Kernel("mul", wrong), "gradient[0]"),
    "no gradient": (
        Cell(OP, "exp", "float32", "backward"), Kernel("exp", lambda r, a: r * 0), "gradient[0]"),
    "out ignored": (Cell(OP, "exp", "float32", "out"), Call("exp", without_out), "out= (filled)"),
    "out replaced": (Cell(OP, "exp", "float32", "out"), Call("exp", replaced_out), "strides"),
    "inplace value": (Cell(OP, "exp", "float32", "inplace"), Kernel(
        "exp_", lambda r, a: r.add_(1)), "not close"),
    "inplace identity": (Cell(OP, "exp", "float32", "inplace"), Call("exp_", copied), "another"),
    "view": (Cell(OP, "transpose", "float32", "view"), Call("transpose", copied), "is a copy"),
    "offset": (Cell(OP, "exp", "float32", "view"), Kernel(
        "exp", wrong_where(lambda t: t.storage_offset() > 0)), "not close"),
    "noncontiguous": (Cell(OP, "exp", "float32", "noncontiguous"), Kernel(
        "exp", wrong_where(lambda t: not t.is_contiguous())), "not close"),
    "channels last": (Cell(OP, "nn.functional.conv2d", "float32", "channels_last"), Kernel(
        "convolution", wrong_where(lambda t: not t.is_contiguous())), "not close"),
    "zero_dim": (Cell(OP, "exp", "float32", "zero_dim"), Kernel(
        "exp", wrong_where(lambda t: t.dim() == 0)), "not close"),
    "empty": (Cell(OP, "add", "float32", "empty"), Kernel(
        "add", lambda r, a: r.reshape(-1) if r.numel() == 0 else r), "shape"),
    "autocast": (Cell(OP, "mm", "float32", "autocast"), Call("mm", full_precision), "dtype"),
    "autocast value": (Cell(OP, "mm", "float32", "autocast"), Kernel("mm", wrong), "far"),
    "autocast nan": (
        Cell(OP, "mm", "float32", "autocast"), Kernel("mm", lambda r, a: r.fill_(float("nan"))), "far"),
    "errors": (Cell(OP, "cat", "any", "errors"), Call("cat", swallowed), "raises nothing"),
    "module": (Cell("module", "nn.Linear", "float32", "forward"), Kernel("addmm", wrong), "close"),
    "module gradient": (
        Cell("module", "nn.Linear", "float32", "backward"), Kernel("mm", wrong), "result["),
    "buffers": (Cell("module", "nn.BatchNorm1d", "float32", "forward"), Kernel(
        "native_batch_norm", lambda r, a: a[3].add_(1) is None or r), "result[1]"),
    "module layout": (Cell("module", "nn.Conv2d", "float32", "channels_last"), Kernel(
        "convolution", wrong_where(lambda t: not t.is_contiguous())), "not close"),
    "step": (Cell("optim", "SGD", "float32", "step"), Kernel(
        "add_", lambda r, a: r.mul_(1.1)), "parameters[0]"),
    "foreach": (Cell("optim", "Adam", "float32", "foreach"), Kernel(
        "_foreach_addcdiv_", shifted_in_place), "parameters[0]"),
    "fused": (Cell("optim", "Adam", "float32", "fused"), Kernel(
        "_fused_adam_", shifted_in_place), "parameters[0]"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(name):
    cell, mode, words = FAULTS[name]
    good = outcome(cell)
    assert good.status == "pass", good
    assert good.samples > 0
    bad = outcome(cell, mode)
    assert bad.status == "fail", bad
    assert words in bad.message


def test_an_exception_of_the_device_is_an_error():
    def fault(result, args):
        raise RuntimeError("no such kernel")

    bad = outcome(Cell(OP, "exp", "float32", "forward"), Kernel("exp", fault))
    assert (bad.status, bad.samples) == ("error", 3)
    assert "3 of 3 samples" in bad.message
    assert "no such kernel" in bad.message


def test_random_values_are_not_compared():
    seeded = Call("bernoulli", lambda f, a, k: f(*a, **k).logical_not().to(a[0].dtype))
    found = outcome(Cell(OP, "bernoulli", "float32", "forward"), seeded)
    assert found.status == "pass"
    assert "random" in found.reason


def test_what_the_cpu_refuses_is_left_out_with_its_words():
    found = outcome(Cell(OP, "jiterator_unary", "float32", "forward"))
    assert found.status == "skip"
    assert "only supported on CUDA" in found.reason


def test_a_cell_without_samples_says_so():
    found = outcome(Cell(OP, "mm", "float32", "channels_last"))
    assert (found.status, found.reason) == ("skip", "not applicable: no sample of this kind")


def test_signs_of_eigenvectors_are_free():
    found = outcome(
        Cell(OP, "linalg.eigh", "float32", "forward"),
        Kernel("_linalg_eigh", lambda r, a: (r[0], -r[1])),
    )
    assert found.status == "pass", found


def test_whole_numbers_with_a_floating_result_are_held_to_its_float64_value():
    def exact(func, args, kwargs):
        wide = {
            k: v.double() if k == "aweights" and v is not None else v for k, v in kwargs.items()
        }
        return func(args[0].double(), **wide).float()

    cell = Cell(OP, "cov", "int64", "forward")  # one sample divides by a difference near 0
    assert outcome(cell, Call("cov", exact)).status == "pass"
    assert outcome(cell, Call("cov", lambda f, a, k: exact(f, a, k) * 1.001)).status == "fail"
