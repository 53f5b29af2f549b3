"""Tensor subclasses, dispatch modes and operators from Python work with the device's tensors."""

import itertools

import pytest
import torch
from torch import nn
from torch.masked import masked_tensor
from torch.nn import functional as F
from torch.testing import assert_close
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

pytestmark = pytest.mark.both_modes

_numbers = itertools.count()


class Named(torch.Tensor):
    """A tensor with a name that its results inherit."""

    name = "none"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        for one in args:
            if isinstance(one, Named) and isinstance(result, Named):
                result.name = one.name
        return result


class Scaled(torch.Tensor):
    """A wrapper of 8-bit integers with one scale; operators see the numbers they stand for."""

    @staticmethod
    def __new__(cls, raw, scale):
        return torch.Tensor._make_wrapper_subclass(
            cls, raw.shape, dtype=torch.float32, device=raw.device
        )

    def __init__(self, raw, scale):
        self.raw, self.scale = raw, scale

    def __repr__(self):
        return f"Scaled({self.raw}, {self.scale})"

    def __tensor_flatten__(self):
        return ["raw"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, size, stride):
        return Scaled(inner["raw"], scale)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (torch.ops.aten._to_copy.default, torch.ops.aten.detach.default):
            options = {k: v for k, v in kwargs.items() if k != "dtype"}
            return Scaled(function(args[0].raw, **options), args[0].scale)
        plain = tree_map(lambda t: t.raw * t.scale if isinstance(t, Scaled) else t, (args, kwargs))
        return function(*plain[0], **plain[1])


def test_a_subclass_survives_operators_and_moves(device):
    x = torch.ones(3, device=device).as_subclass(Named)
    x.name = "weights"
    for result in (x * 2 + 1, x.cpu(), x.cpu().to(device), x.clone(), x.half()):
        assert (type(result), result.name) == (Named, "weights")
    assert (x @ x).device.type == device
    parameter = nn.Parameter(x)
    (parameter * 3).sum().backward()
    assert_close(parameter.grad.as_subclass(torch.Tensor), torch.full((3,), 3.0, device=device))


def test_a_wrapper_is_moved_with_its_module(device):
    raw = torch.arange(12, dtype=torch.int8).reshape(4, 3) - 6
    layer = nn.Linear(3, 4, bias=False)
    layer.weight = nn.Parameter(Scaled(raw, 0.5), requires_grad=False)
    layer.to(device)
    assert isinstance(layer.weight.data, Scaled)
    assert layer.weight.raw.device.type == device
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    assert_close(layer(x.to(device)).cpu(), F.linear(x, raw * 0.5))
    assert_close(layer.cpu()(x), F.linear(x, raw * 0.5))


def test_wrappers_of_torch_itself(device):
    pair = TwoTensor(torch.ones(3, device=device), torch.zeros(3, device=device)) + 1
    assert (pair.a.tolist(), pair.b.tolist()) == ([2.0] * 3, [1.0] * 3)
    assert pair.device.type == pair.a.device.type == device
    data, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([[1, 0, 1], [0, 1, 1]]).bool()
    sums = [(masked_tensor(data.to(d), mask.to(d)) * 2).sum(1) for d in ("cpu", device)]
    assert sums[1].get_data().device.type == device
    assert_close(sums[1].get_data().cpu(), sums[0].get_data())


def test_a_mode_sees_every_operator(device):
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen = []
    x = torch.ones(2, 3, device=device, requires_grad=True)
    with Names():
        y = (x.sin() @ x.t()).softmax(0)
        y.sum().backward()
    assert seen[:4] == ["aten.sin.default", "aten.t.default", "aten.mm.default",
                        "aten._softmax.default"]  # fmt: skip
    assert "aten._softmax_backward_data.default" in seen


@pytest.fixture
def space():
    """A namespace of operators that no other test uses."""
    return f"graft_test_{next(_numbers)}"


def test_a_custom_operator_with_gradient_and_batching(device, module, space):
    @torch.library.custom_op(f"{space}::scale", mutates_args=())
    def scale(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scale.register_fake(lambda x, by: torch.empty_like(x))
    scale.register_autograd(
        lambda ctx, grad: (grad * ctx.by, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    )
    scale.register_vmap(lambda info, dims, x, by: (scale(x, by), dims[0]))
    x = torch.ones(3, device=device, requires_grad=True)
    with module.fallback.forbid():
        scale(x, 3.0).sum().backward()
        rows = torch.vmap(lambda row: scale(row, 2.0))(torch.ones(3, 2, device=device))
    assert x.grad.tolist() == [3.0] * 3
    assert rows.tolist() == [[2.0, 2.0]] * 3
    # PyTorch's check of the gradient's registration knows no other device than CPU, CUDA and XPU.
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(scale, (x.detach(), 2.0), test_utils=tests)


def test_a_custom_operator_that_writes(device, space):
    @torch.library.custom_op(f"{space}::count", mutates_args={"x"})
    def count(x: torch.Tensor) -> None:
        x.add_(1)

    x = torch.zeros(2, device=device)
    version = x._version
    count(x)
    assert x.tolist() == [1.0, 1.0]
    assert x._version > version


def test_a_kernel_of_its_own_for_the_device(device, module, space):
    @torch.library.custom_op(f"{space}::twice", mutates_args=(), device_types="cpu")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(2, device=device)
    module.fallback.reset()
    with module.fallback.off():
        assert twice(x).tolist() == [2.0, 2.0]
    assert module.fallback.counts()[f"{space}::twice"].calls == 1
    with module.fallback.forbid(), pytest.raises(RuntimeError, match=f"{space}::twice"):
        twice(x)

    twice.register_kernel(device)(lambda x: x * 2 + 100)
    with module.fallback.forbid():
        assert twice(x).tolist() == [102.0, 102.0]
    assert twice(x.cpu()).tolist() == [2.0, 2.0]


def test_a_library_registers_for_the_dispatch_key(device, space):
    library = torch.library.Library(space, "DEF")
    library.define("five(Tensor x) -> Tensor")
    library.impl("five", lambda x: x * 5, "PrivateUse1")
    library.define("six(Tensor x) -> Tensor")
    library.impl("six", lambda x: x * 6, "CompositeExplicitAutograd")
    operators = getattr(torch.ops, space)
    x = torch.ones(1, device=device)
    assert (operators.five(x).item(), operators.six(x).item()) == (5.0, 6.0)
    library._destroy()


def test_an_autograd_function_is_checked_numerically(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = torch.linspace(-1, 2, 5, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(Cube.apply, (x,))
    assert torch.autograd.gradgradcheck(Cube.apply, (x,))
