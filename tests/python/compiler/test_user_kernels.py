"""Kernels that a user registers for PyTorch's operators: compiled calls reach those that eager calls reach."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import torch_graft
from torch_graft import _C
from torch_graft.compiler import capture, reports

pytestmark = [pytest.mark.one_mode, pytest.mark.usefixtures("fresh")]

Register = Callable[..., torch.library.Library]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers kernels for the device's key until the test ends. PyTorch warns of what it replaces."""
    made = []

    def add(key: str = "PrivateUse1", **kernels: Callable[..., Any]) -> torch.library.Library:
        library = torch.library.Library("aten", "IMPL")
        made.append(library)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, kernel in kernels.items():
                library.impl(name.replace("__", "."), kernel, key)
        return library

    yield add
    for library in made:
        library._destroy()


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def shown(call: Callable[..., Any], inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a call shows: its result, the gradients, and the inputs afterwards."""
    torch.manual_seed(7)
    given = [one.detach().clone().requires_grad_(one.requires_grad) for one in inputs]
    result = call(*given)
    if result.requires_grad:
        result.sum().backward()
    tensors = [result, *(one.grad for one in given if one.grad is not None), *given]
    return [one.detach().cpu() for one in tensors]  # comparing there calls no user's kernel


def same(call: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> list[torch.Tensor]:
    """The compiled call shows what the eager call shows, which is returned."""
    expected = shown(call, list(inputs))
    found = shown(torch.compile(call, fullgraph=True, **options), list(inputs))
    torch.testing.assert_close(found, expected)
    assert all(one.compiled for one in reports())
    if not any(one.requires_grad for one in inputs):
        model = _Called(call)
        optimized = torch_graft.optimize(model)
        for _ in range(3):
            torch.testing.assert_close(shown(optimized, list(inputs)), expected)
    return expected


class _Called(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.call(*inputs)


def far(tensors: list[torch.Tensor], at_least: float = 500) -> None:
    """The result is one that a registered kernel has moved."""
    assert tensors[0].abs().max() > at_least


def plus(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: kernel(*given, **named) + 1000


def matrices(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return (left.unsqueeze(-1) * right.unsqueeze(0)).sum(1)


KERNELS: dict[str, tuple[dict[str, Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "pointwise": ({"gelu": lambda x, *, approximate="none": x * 2 + 1000},
                  lambda x: F.gelu(x * 3) + 1, ((4, 8),)),
    "binary": ({"mul__Tensor": lambda x, y: x + y + 1000}, lambda x, y: x * y - 1, ((4, 8), (8,))),
    "dropout": ({"native_dropout": lambda x, p, train: (x + 1000, x > 0)},
                lambda x: F.dropout(x, 0.5) + 1, ((4, 8),)),
    "reduction": ({"sum__dim_IntList": lambda x, dim, keepdim=False, *, dtype=None:
                   x.amax(dim, keepdim) + 1000},
                  lambda x: (x * 2).sum(-1, keepdim=True) + x, ((4, 8),)),
    "mm": ({"mm": plus(matrices)}, lambda x, y: (x @ y).relu(), ((4, 8), (8, 3))),
    "addmm": ({"addmm": lambda b, x, y, *, beta=1, alpha=1: matrices(x, y) + b + 1000},
              lambda x, w, b: F.linear(x, w, b).relu(), ((4, 8), (3, 8), (3,))),
    "softmax": ({"_softmax": lambda x, dim, half: x.exp() + 1000},
                lambda x: (x + 1).softmax(-1) * 2, ((4, 8),)),
    "layer norm": ({"native_layer_norm": lambda x, shape, w, b, eps:
                    (x + 1000, x.mean(-1, keepdim=True), x.amax(-1, keepdim=True))},
                   lambda x: F.layer_norm(x, (8,)) * 2, ((4, 8),)),
    "convolution": ({"convolution_overrideable": lambda x, w, *rest: x.sum(1, keepdim=True) + 1000},
                    lambda x, w: F.conv2d(x, w, padding=1).relu(), ((2, 3, 5, 5), (1, 3, 3, 3))),
    "taken apart": ({"hardswish": plus(torch.neg)}, lambda x: F.hardswish(x) + 1, ((4, 8),)),
    "composite": ({"celu": lambda x, alpha=1.0: x.neg() + 1000}, lambda x: F.celu(x) * 2, ((4, 8),)),
    "batch norm": ({"native_batch_norm": lambda x, w, b, m, v, train, momentum, eps:
                    (x + 1000, x.new_empty(0), x.new_empty(0))},
                   lambda x, m, v: F.batch_norm(x, m, v) * 2, ((4, 8), (8,), (8,))),
    "upsampling": ({"upsample_nearest2d": lambda x, size, h=None, w=None:
                    x.repeat_interleave(2, -1).repeat_interleave(2, -2) + 1000},
                   lambda x: F.interpolate(x, scale_factor=2) + 1, ((1, 2, 3, 3),)),
    "factory": ({"zeros_like": lambda x, **rest: x * 0 + 1000},
                lambda x: torch.zeros_like(x) + x, ((4, 8),)),
    "random": ({"rand_like": lambda x, **rest: torch.empty_like(x).uniform_(1000, 2000)},
               lambda x: torch.rand_like(x) + x, ((4, 8),)),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_the_result_is_the_users(name: str, register: Register, device: str) -> None:
    kernels, call, sizes = KERNELS[name]
    register(**kernels)
    far(same(call, *(torch.randn(size, device=device) for size in sizes)))


@pytest.mark.parametrize(
    "name", ["pointwise", "mm", "addmm", "softmax", "convolution", "layer norm"]
)
def test_gradients_are_eagers(name: str, register: Register, device: str) -> None:
    kernels, call, sizes = KERNELS[name]
    register(**kernels)
    inputs = [torch.randn(size, device=device, requires_grad=True) for size in sizes]
    far(same(call, *inputs))
    assert [one.part for one in reports()] == ["forward", "backward"]


@pytest.mark.parametrize("name", ["pointwise", "addmm"])
def test_one_graph_serves_all_sizes(name: str, register: Register, device: str) -> None:
    kernels, call, sizes = KERNELS[name]
    register(**kernels)
    compiled = torch.compile(call, fullgraph=True, dynamic=True)
    for rows in (4, 7, 2):
        first, *rest = (torch.randn(size, device=device) for size in sizes)
        inputs = [torch.randn(rows, *first.shape[1:], device=device), *rest]
        torch.testing.assert_close(compiled(*inputs), call(*inputs))
    assert len(reports()) == 1


def test_a_backward_operator_is_the_users(register: Register, device: str) -> None:
    register(gelu_backward=lambda grad, x, *, approximate="none": grad * 0 + 1000)
    x = torch.randn(4, 8, device=device, requires_grad=True)
    far(same(lambda x: F.gelu(x), x)[1:])


@pytest.mark.parametrize("kernels", [["relu"], ["relu_"], ["relu", "relu_"], ["add.out"]], ids=str)
def test_each_form_has_its_own_kernel(kernels: list[str], register: Register, device: str) -> None:
    """PyTorch writes all forms as one, but eager calls the kernel of the form that the model wrote."""
    made = {
        "relu": lambda x: x.neg() + 1000,
        "relu_": lambda x: x.neg_().add_(5000),
        "add.out": lambda x, y, *, alpha=1, out: out.copy_(x - y).mul_(3000),
    }
    register(**{name.replace(".", "__"): made[name] for name in kernels})

    def call(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.relu_()
        sums = torch.empty_like(y)
        torch.add(x, y, out=sums)
        return torch.relu(x) + y + sums + (x + y)

    far(same(call, torch.randn(4, 8, device=device)))


@pytest.mark.parametrize("traced_before", [False, True])
def test_autograds_kernel_is_traced(traced_before: bool, register: Register, device: str) -> None:
    """PyTorch remembers of an operator that it traced which kernel it reached."""
    x = torch.randn(4, 8, device=device)
    if traced_before:
        torch.compile(lambda x: F.silu(x) * 2, fullgraph=True)(x)
    library = register("AutogradPrivateUse1", silu=lambda x: x.neg() * x + 1000)
    far(same(lambda x: F.silu(x) + 1, x))
    far(same(lambda x: F.silu(x) + 1, torch.randn(4, 8, device=device, requires_grad=True)))
    library._destroy()
    assert same(lambda x: F.silu(x) + 1, x)[0].abs().max() < 500


def test_a_kernel_for_several_devices(register: Register, device: str) -> None:
    name = "CompositeExplicitAutograd"
    register(name, rot90=lambda x, k=1, dims=(0, 1): x.neg() + 1000)
    far(same(lambda x: torch.rot90(x) + 1, torch.randn(4, 4, device=device)))


@pytest.mark.parametrize("graph", ["compile", "optimize"])
def test_later_registrations_are_noticed(graph: str, register: Register, device: str) -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x) + 1

    x = torch.randn(4, 8, device=device)
    model = _Called(call)
    compiled = torch.compile(model) if graph == "compile" else torch_graft.optimize(model)

    def check(moved: float) -> None:
        for _ in range(3):
            torch.testing.assert_close(compiled(x), call(x))
        assert (call(x).min() > moved - 100).item()

    check(0)
    first = register(gelu=lambda x, *, approximate="none": x + 1000)
    check(1000)
    second = register(gelu=lambda x, *, approximate="none": x + 2000)
    check(2000)
    second._destroy()
    check(1000)
    first._destroy()
    check(0)


def test_the_text_names_the_kernel(register: Register, device: str) -> None:
    register(gelu=lambda x, *, approximate="none": x + 1000, relu_=lambda x: x.add_(1000))
    found = capture(lambda x: F.gelu(x + 1) + (x * 2).relu_(), torch.randn(4, 8, device=device))
    lines = found.forward.splitlines()
    [gelu] = [line for line in lines if "aten.gelu.default" in line]
    assert " opaque" in gelu
    assert ' note kernel="test_user_kernels.py:' in gelu
    [relu] = [line for line in lines if "aten.relu.default" in line]
    assert ' note called="aten.relu_.default"' in relu


def test_a_users_node_is_no_fallback(register: Register, device: str, native: None) -> None:
    register(gelu=lambda x, *, approximate="none": x + 1000)
    torch.compile(F.gelu)(torch.randn(4, 8, device=device))
    [report] = reports()
    counts = report.counts()
    assert counts is not None
    assert counts.eager == {}
    assert counts.fused == 0


@pytest.mark.parametrize(("kernel", "words"), [
    (lambda x, *, approximate="none": x[:1], r"registered at test_user_kernels.py.*Float\[1, 8\]"),
    (lambda x, *, approximate="none": x.double(), r"returned Double\[4, 8\] on .* as result 0"),
    (lambda x, *, approximate="none": x.cpu(), "on cpu"),
    (lambda x, *, approximate="none": 1 // 0, "by zero"),
], ids=["shape", "dtype", "device", "exception"])  # fmt: skip
def test_a_wrong_kernel_is_an_exception(
    kernel: Callable[..., Any], words: str, register: Register, device: str
) -> None:
    library = register(gelu=kernel)
    x = torch.randn(4, 8, device=device)
    compiled = torch.compile(lambda x: F.gelu(x * 2) + 1, fullgraph=True)
    with pytest.raises((RuntimeError, ValueError, ZeroDivisionError), match=words):
        compiled(x)
    torch.testing.assert_close((x + 1).cpu(), x.cpu() + 1)
    library._destroy()
    torch.testing.assert_close(compiled(x), F.gelu(x * 2) + 1)


def test_results_may_lie_otherwise_in_memory(register: Register, device: str) -> None:
    register(gelu=lambda x, *, approximate="none": (x + 1000).t().contiguous().t())
    far(same(lambda x: F.gelu(x * 2) + 1, torch.randn(4, 8, device=device)))


def test_both_ways_of_torch_library(device: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = torch.library.Library("aten", "FRAGMENT")
        torch.library.impl("aten::gelu", torch.device(device).type, lib=library)(
            lambda x, *, approximate="none": x + 1000
        )
    try:
        far(same(lambda x: F.gelu(x) + 1, torch.randn(4, 8, device=device)))
    finally:
        library._destroy()


def test_nobodys_kernels_are_not_found() -> None:
    assert _C.all_user_kernels(False) == {}
    assert _C.all_user_kernels(True) == {}
    assert _C.user_kernels(["aten::gelu", "aten::no_such", "none"], False) == {}


def test_kernels_of_the_slot(python: Callable[..., Any]) -> None:
    """Those registered for VE take the slot's tensors, those for PrivateUse1 the device's behind it."""
    ran = python(
        """
        import warnings
        import torch.nn.functional as F

        warnings.simplefilter("ignore")
        seen = set()

        def note(name, x, moved):
            seen.add((name, x.device.type))
            return x + moved

        library = torch.library.Library("aten", "IMPL")
        library.impl("gelu", lambda x, *, approximate="none": note("gelu", x, 1000), "VE")
        library.impl("silu", lambda x: note("silu", x, 3000), "PrivateUse1")
        call = lambda x: F.gelu(x) * 2 + F.silu(x)
        x = torch.zeros(4, device="ve")
        expected, eager = call(x).cpu(), set(seen)
        seen.clear()
        assert torch.compile(call, fullgraph=True)(x).cpu().equal(expected)
        assert expected.eq(5000).all() and seen == eager, (seen, eager)
        """,
        GRAFT_VE_DEVICES="host",
    )
    assert ran.code == 0, ran.err


def test_an_operator_of_the_users_own(device: str) -> None:
    @torch.library.custom_op("graft_tests::scaled", mutates_args=(), device_types="cpu")
    def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    scaled.register_fake(lambda x, factor: torch.empty_like(x))
    scaled.register_kernel(torch.device(device).type)(lambda x, factor: x * factor + 1)
    x = torch.randn(4, 5, device=device)
    result, _ = same(lambda x: scaled(x.relu(), 3.0), x)
    torch.testing.assert_close(result, x.cpu().relu() * 3 + 1)


SOURCE = """
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {
at::Tensor plus_seven(const at::Tensor& x) { return x + 7; }
at::Tensor relu(const at::Tensor& x) { return at::clamp_min(x, 0) + 100; }
}  // namespace

TORCH_LIBRARY(graft_compiled_tests, m) { m.def("plus_seven(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(graft_compiled_tests, PrivateUse1, m) { m.impl("plus_seven", plus_seven); }
TORCH_LIBRARY_IMPL(graft_compiled_tests, Meta, m) { m.impl("plus_seven", plus_seven); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("relu", relu); }
"""
CALLS = """
import torch_graft
torch.ops.load_library(%r)
x = torch.tensor([-1.0, 2.0], device=D)
def call(x):
    return torch.ops.graft_compiled_tests.plus_seven(torch.relu(x) * 2)
compiled, optimized = torch.compile(call, fullgraph=True), torch_graft.optimize(torch.nn.ReLU())
print(json.dumps([call(x).tolist(), compiled(x).tolist(), optimized(x).tolist()]))
"""


@pytest.mark.seldom
def test_kernels_of_a_compiled_library(tmp_path: Path, python: Callable[..., Any]) -> None:
    source, library = tmp_path / "kernels.cpp", tmp_path / "kernels.so"
    source.write_text(SOURCE)
    root = Path(torch.__file__).parent
    command = ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{root}/include",
               f"-I{root}/include/torch/csrc/api/include", str(source), "-o", str(library),
               f"-L{root}/lib", "-ltorch", "-ltorch_cpu", "-lc10"]  # fmt: skip
    subprocess.run(command, check=True)
    eager, compiled, optimized = python(CALLS % str(library)).value()
    assert eager == compiled == [207, 211]
    assert optimized == [100, 102]
