"""Gradients over the slot's devices."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from places import neighbours


def test_first_and_second_derivatives() -> None:
    x = torch.rand(3, 3, device="ve", dtype=torch.float64, requires_grad=True)
    eye = torch.eye(3, device="ve", dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: torch.linalg.inv(a @ a.t() + eye).sin(), (x,))
    assert torch.autograd.gradgradcheck(lambda a: (a**3).sum(), (x,))


def test_training_equals_the_cpus() -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(
        nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)
    )
    x, y = torch.rand(4, 2, 6, 6), torch.tensor([0, 1, 2, 0])
    ours(x)
    theirs, ours = copy.deepcopy(ours), ours.ve()
    for optimizer in (torch.optim.SGD, torch.optim.AdamW):
        for net, device in ((theirs, "cpu"), (ours, "ve")):
            step = optimizer(net.parameters(), lr=0.05)
            for _ in range(3):
                step.zero_grad()
                nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
                step.step()
    for one, other in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        assert_close(one.cpu(), other, atol=1e-4, rtol=1e-4)


def test_a_model_split_over_all_places() -> None:
    places = ["ve:0", *neighbours()]
    layers = [nn.Linear(3, 3).to(place) for place in places]
    alone = [copy.deepcopy(layer).cpu() for layer in layers]
    x = torch.rand(2, 3)
    value = x
    for layer, place in zip(layers, places, strict=True):
        value = layer(value.to(place)).tanh()
    value.sum().backward()
    wanted = x
    for layer in alone:
        wanted = layer(wanted).tanh()
    wanted.sum().backward()
    for layer, other in zip(layers, alone, strict=True):
        assert layer.weight.grad.device == layer.weight.device
        assert_close(layer.weight.grad.cpu(), other.weight.grad)


def test_in_place_views_and_hooks() -> None:
    def run(device: str) -> torch.Tensor:
        x = torch.arange(6.0, device=device, requires_grad=True)
        seen = []
        x.register_hook(lambda grad: seen.append(grad.device.type))
        y = x * 2
        y[1:3].mul_(5)
        y.view(2, 3)[1].exp_()
        y.sum().backward()
        assert seen == [device]
        return x.grad.cpu()

    assert_close(run("ve"), run("cpu"))


def test_checkpoints_and_transforms() -> None:
    from torch.func import grad, jvp, vmap
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64, device="ve", requires_grad=True)
    y = checkpoint(lambda a: torch.dropout(a * 2, 0.5, True), x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert vmap(lambda a: a.sum())(torch.ones(3, 2, device="ve")).tolist() == [2, 2, 2]
    assert grad(lambda a: (a**2).sum())(torch.ones(3, device="ve")).tolist() == [2, 2, 2]
    value, tangent = jvp(torch.sin, (torch.zeros(2, device="ve"),), (torch.ones(2, device="ve"),))
    assert (value.tolist(), tangent.tolist()) == ([0, 0], [1, 1])


def test_own_functions_run_on_the_slots_streams() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.full((3,), 3.0, device="ve:1", requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


@pytest.mark.parametrize("device", ["ve:0", "ve:1"])
def test_backward_runs_on_the_streams_of_the_forward(device: str) -> None:
    seen = []

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = x
            for _ in range(60):
                y = (y @ y).softmax(0)
            return x + 0 * y

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            result = grad * x
            seen.append(torch.ve.current_stream(x.device))
            for _ in range(60):
                x = (x @ x).softmax(0)
            return result + 0 * x

    index = torch.device(device).index
    x = torch.rand(300, 300, device=device, requires_grad=True)
    torch.ve.synchronize(index)
    first, second = torch.ve.Stream(index), torch.ve.Stream(index)
    with torch.ve.stream(first):
        y = Slow.apply(x)
    second.wait_stream(first)
    with torch.ve.stream(second):
        Slow.apply(y).sum().backward()
    assert seen == [second, first]
    total = x.grad.clone()  # on the default stream, which waits
    assert_close(total.cpu(), (x * x).detach().cpu())
    assert torch.ve.current_stream(index) == torch.ve.default_stream(index)
