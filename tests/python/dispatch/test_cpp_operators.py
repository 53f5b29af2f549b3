"""An operator that a user wrote in C++, against PyTorch alone, for the dispatch key PrivateUse1."""

import subprocess
from pathlib import Path

import pytest
import torch

SPACE = "graft_cpp"
SOURCE = """
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace {

at::Tensor swish(const at::Tensor& x, double slope) { return x.mul(x.mul(slope).sigmoid()); }

at::Tensor swish_backward(const at::Tensor& grad, const at::Tensor& x, double slope) {
  const at::Tensor gate = x.mul(slope).sigmoid();
  return grad.mul(gate.add(x.mul(slope).mul(gate).mul(gate.neg().add(1))));
}

void grow_(const at::Tensor& x, double by) { x.add_(by); }

}  // namespace

TORCH_LIBRARY(graft_cpp, m) {
  m.def("swish(Tensor x, float slope) -> Tensor");
  m.def("swish_backward(Tensor grad, Tensor x, float slope) -> Tensor");
  m.def("grow_(Tensor(a!) x, float by) -> ()");
}

TORCH_LIBRARY_IMPL(graft_cpp, PrivateUse1, m) {
  m.impl("swish", &swish);
  m.impl("swish_backward", &swish_backward);
  m.impl("grow_", &grow_);
}
"""
# PyTorch's check of a gradient's registration knows no other device than CPU, CUDA and XPU.
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


def register_from_python(operators):
    """What C++ need not say: the shapes of results, and the gradient."""

    def keep(ctx, inputs, output):
        x, ctx.slope = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        return operators.swish_backward(grad, *ctx.saved_tensors, ctx.slope), None

    torch.library.register_fake(f"{SPACE}::swish", lambda x, slope: torch.empty_like(x))
    torch.library.register_fake(f"{SPACE}::swish_backward", lambda g, x, s: torch.empty_like(x))
    torch.library.register_fake(f"{SPACE}::grow_", lambda x, by: None)
    torch.library.register_autograd(f"{SPACE}::swish", backward, setup_context=keep)


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    source, library = folder / "operators.cpp", folder / "operators.so"
    source.write_text(SOURCE)
    torch_folder = Path(torch.__file__).parent
    lib = torch_folder / "lib"
    includes = ["-isystem", torch_folder / "include"]
    links = ["-L", lib, "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{lib}"]
    flags = ["-shared", "-fPIC", "-O0", "-std=c++20"]
    command = ["g++", *flags, *includes, source, "-o", library, *links]
    subprocess.run([str(part) for part in command], check=True)
    torch.ops.load_library(str(library))
    operators = getattr(torch.ops, SPACE)
    register_from_python(operators)
    return operators


def test_it_runs_on_every_device_and_falls_back_nowhere(device, second, module, operators):
    x = torch.linspace(-3, 3, 7)
    before = module.statistics()["launches"]
    with module.fallback.forbid():
        found = operators.swish(x.to(device), 1.5)
        there = operators.swish(x.to(second), 1.5)
    assert module.statistics()["launches"] > before
    assert (found.device, there.device) == (torch.device(device, 0), torch.device(second))
    expected = x * torch.sigmoid(1.5 * x)
    torch.testing.assert_close(found.cpu(), expected)
    torch.testing.assert_close(there.cpu(), expected)


def test_its_gradient_is_right(device, module, operators):
    x = torch.linspace(-2, 2, 5, dtype=torch.float64, device=device, requires_grad=True)
    with module.fallback.forbid():
        operators.swish(x, 0.7).sum().backward()
    assert x.grad.device == x.device
    assert torch.autograd.gradcheck(lambda x: operators.swish(x, 0.7), (x,))


def test_it_writes_into_its_argument(device, operators):
    x = torch.zeros(3, device=device)
    version = x._version
    operators.grow_(x, 2.5)
    assert x.tolist() == [2.5] * 3
    assert x._version > version


def test_it_passes_the_checks_of_torch(device, operators):
    x = torch.linspace(-1, 1, 4, device=device, requires_grad=True)
    torch.library.opcheck(operators.swish.default, (x, 2.0), test_utils=CHECKS)
    torch.library.opcheck(operators.grow_.default, (x.detach(), 2.0), test_utils=CHECKS)


def test_it_is_traced_and_replayed(device, module, operators):
    x = torch.ones(3, device=device)
    program = torch.export.export(Swish(), (x,))
    assert f"{SPACE}.swish.default" in program.graph_module.code
    torch.testing.assert_close(program.module()(x), operators.swish(x, 2.0) + 1)
    graph = torch.accelerator.Graph()
    with graph:
        y = operators.swish(x, 2.0)
    x.fill_(-1)
    graph.replay()
    torch.testing.assert_close(y.cpu(), -torch.sigmoid(torch.tensor([-2.0] * 3)))


def test_tensors_of_the_cpu_have_no_kernel(operators):
    with pytest.raises(
        NotImplementedError, match=f"'{SPACE}::swish' with arguments from the 'CPU'"
    ):
        operators.swish(torch.ones(2), 1.0)


class Swish(torch.nn.Module):
    def forward(self, x):
        return torch.ops.graft_cpp.swish(x, 2.0) + 1
