# tests/python/compiler/test_optimize.py: an optimized module gives its model's results, whatever changes.
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torch_graft
from optimized_net import DEVICE, Net, check, fresh, hits, image, pair
from traced_models import CASES

pytestmark = pytest.mark.any_driver

_reset = pytest.fixture(autouse=True)(fresh)


def test_the_second_call_runs_no_tracing() -> None:
    model, optimized = pair()
    check(model, optimized, image())
    assert hits(optimized) == 0
    assert len(optimized._graft_calls) == 1
    for _ in range(3):
        check(model, optimized, image())
    assert hits(optimized) == 3


def test_everything_is_shared() -> None:
    model, optimized = pair()
    assert isinstance(optimized, Net)
    assert isinstance(optimized, nn.Module)
    assert list(optimized.state_dict()) == list(model.state_dict())
    assert all(a is b for a, b in zip(optimized.parameters(), model.parameters(), strict=True))
    assert all(a is b for a, b in zip(optimized.buffers(), model.buffers(), strict=True))
    assert optimized.conv is model.conv


def test_optimize_on_the_cpu_then_move_then_eval_then_run() -> None:
    model = Net()
    reference = copy.deepcopy(model).eval()
    optimized = torch_graft.optimize(model, torch.randn(2, 3, 8, 8))
    x = torch.randn(2, 3, 8, 8)
    optimized.eval()
    assert_close(optimized(x), reference(x))
    optimized = optimized.to(DEVICE)
    assert_close(optimized(x.to(DEVICE)).cpu(), reference(x).detach(), rtol=1e-4, atol=1e-4)
    assert_close(optimized(x.to(DEVICE)).cpu(), reference(x).detach(), rtol=1e-4, atol=1e-4)
    assert hits(optimized) == 1
    optimized = optimized.to("cpu")
    assert_close(optimized(x), reference(x).detach())


def _stepped(make: Callable[..., torch.optim.Optimizer], **options: Any) -> Callable[..., None]:
    def change(model: Net) -> None:
        optimizer = make(model.parameters(), lr=0.1, **options)
        model(image()).square().sum().backward()
        optimizer.step()

    return change


def _replaced(model: Net) -> None:
    model.conv.weight = nn.Parameter(torch.randn_like(model.conv.weight))


def _rebound(model: Net) -> None:
    model.conv.weight.data = torch.randn_like(model.conv.weight)


def _another_child(model: Net) -> None:
    model.head = nn.Linear(8, 5).to(DEVICE)


def _loaded(model: Net) -> None:
    model.load_state_dict(Net().state_dict())


def _assigned(model: Net) -> None:
    model.load_state_dict(Net().to(DEVICE).state_dict(), assign=True)


def _hooked(model: Net) -> None:
    model.conv.register_forward_hook(lambda module, args, result: result * 3)


def _statistics(model: Net) -> None:
    model.norm.running_var.data.mul_(3)


def _under_inference_mode(model: Net) -> None:
    with torch.inference_mode():
        model.conv.weight.mul_(2)


def _channels_last(model: Net) -> None:
    model.to(memory_format=torch.channels_last)


def _replayed(model: Net) -> None:
    graph = torch.accelerator.Graph()
    side = torch.Stream(DEVICE)
    with torch.no_grad():
        model.conv.weight.mul_(1)
        with side, graph:
            model.conv.weight.mul_(-2)
    graph.replay()
    torch.accelerator.synchronize()


CHANGES: dict[str, Callable[[Net], object]] = {
    "data": lambda model: model.conv.weight.data.mul_(2),
    "norm": lambda model: model.norm.weight.data.add_(1),
    "statistics": _statistics,
    "bias": lambda model: model.head.bias.detach().zero_(),
    "inference mode": _under_inference_mode,
    "replaced": _replaced,
    "rebound": _rebound,
    "child": _another_child,
    "attribute": lambda model: setattr(model, "scale", 3.0),
    "load_state_dict": _loaded,
    "assign": _assigned,
    "hook": _hooked,
    "train": lambda model: model.norm.train(),
    "memory format": _channels_last,
    "half and back": lambda model: model.to(torch.bfloat16).to(torch.float32),
    "away and back": lambda model: model.to("cpu").to(DEVICE),
    "copy from the host": lambda model: model.conv.weight.data.copy_(torch.zeros(8, 3, 3, 3)),
    "sgd": _stepped(torch.optim.SGD),
    "fused": _stepped(torch.optim.AdamW, fused=True),
    "foreach": _stepped(torch.optim.AdamW, foreach=True),
    "replay": _replayed,
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_result_is_stale(change: str) -> None:
    model, optimized = pair()
    x = image()
    for _ in range(2):
        check(model, optimized, x)
    before = optimized(x)
    CHANGES[change](model)
    twin = copy.deepcopy(model)  # batch norm in training changes what it is checked against
    with torch.no_grad():
        expected = twin(x)
        for _ in range(2):
            assert_close(optimized(x), expected, rtol=1e-4, atol=1e-4)
    if change not in ("memory format", "half and back", "away and back"):
        assert not torch.equal(expected, before)


def test_shapes_may_change() -> None:
    model, optimized = pair()
    for batch in (2, 3, 5, 2, 7, 3):
        check(model, optimized, image(batch))
    assert hits(optimized) == 2


def test_dynamic_sizes_need_one_graph() -> None:
    model = Net().eval().to(DEVICE)
    optimized = torch_graft.optimize(model, dynamic=True)
    torch._dynamo.utils.counters.clear()
    for batch in (2, 3, 17, 64, 3):
        check(model, optimized, image(batch))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dtype_computes_as_autocast(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval().to(DEVICE)
    optimized = torch_graft.optimize(model, dtype=dtype)
    x = torch.randn(4, 16, device=DEVICE)
    with torch.no_grad(), torch.autocast(DEVICE, dtype=dtype):
        expected = model(x)
    for _ in range(3):
        found = optimized(x)
        assert found.dtype == dtype
        assert_close(found, expected, rtol=2e-2, atol=2e-2)
    model[0].weight.data.mul_(-1)
    with torch.no_grad(), torch.autocast(DEVICE, dtype=dtype):
        assert_close(optimized(x), model(x), rtol=2e-2, atol=2e-2)
    assert all(one.dtype == torch.float32 for one in optimized.parameters())


@pytest.mark.parametrize("name", CASES)
def test_models_equal_eager(name: str) -> None:
    factory, inputs = CASES[name]
    torch.manual_seed(1)
    model = factory().to(DEVICE)
    twin = copy.deepcopy(model)
    optimized = torch_graft.optimize(model)
    for _ in range(3):
        torch.manual_seed(2)
        args = [one.to(DEVICE) if isinstance(one, torch.Tensor) else one for one in inputs()]
        same = copy.deepcopy(args)
        torch.manual_seed(3)
        with torch.no_grad():
            expected = twin(*same)
        torch.manual_seed(3)
        assert_close(optimized(*args), expected, rtol=1e-3, atol=1e-3)
        assert_close(args, same)
        assert_close(dict(model.named_buffers()), dict(twin.named_buffers()), rtol=1e-3, atol=1e-3)


def test_training_gives_eagers_gradients_and_steps() -> None:
    model = Net().to(DEVICE).train()
    twin = copy.deepcopy(model)
    optimized = torch_graft.optimize(model, mode="training")
    steps = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, twin)]
    for _ in range(4):
        x = image(4)
        for one, step in zip((optimized, twin), steps, strict=True):
            step.zero_grad()
            one(x).square().mean().backward()
            step.step()
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
            assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert_close(dict(model.named_buffers()), dict(twin.named_buffers()), rtol=1e-3, atol=1e-4)
    assert hits(optimized) == 3
    optimized.eval()
    check(twin.eval(), optimized, image(4))


def test_frozen_parameters_get_no_gradients() -> None:
    model = Net().to(DEVICE).train()
    optimized = torch_graft.optimize(model, mode="training")
    optimized(image()).sum().backward()
    model.zero_grad()
    model.conv.weight.requires_grad_(False)
    optimized(image()).sum().backward()
    assert model.conv.weight.grad is None
    assert model.head.weight.grad is not None
    x = image().requires_grad_()
    optimized(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize(
    "act", [nn.ReLU(), nn.ReLU6(), nn.GELU(), nn.GELU("tanh"), nn.SiLU()], ids=repr
)
def test_activations_in_one_call_with_their_product_are_eagers(act: nn.Module) -> None:
    """NaN, and large numbers of both signs, too."""
    dense = nn.Sequential(nn.Linear(64, 48), act).to(DEVICE).eval()
    spatial = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), act).to(DEVICE).eval()
    depthwise = nn.Sequential(nn.Conv2d(16, 16, 3, groups=16), act).to(DEVICE).eval()
    picture = torch.randn(2, 16, 9, 9)
    for model, x in ((dense, torch.randn(8, 64)), (spatial, picture), (depthwise, picture)):
        given = x.to(DEVICE)
        given[0] *= 1e4
        given[1].view(-1)[3] = float("nan")
        optimized = torch_graft.optimize(model)
        with torch.no_grad():
            assert_close(optimized(given), model(given), equal_nan=True)


class Residual(nn.Module):
    """Convolutions with and without bias, each with a batch norm, and a sum."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.act = act
        self.layers = nn.ModuleList(
            nn.Conv2d(24, 24, 3, padding=1, bias=i == 1, groups=24 if i == 2 else 1)
            for i in range(4)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(24) for _ in self.layers)
        with torch.no_grad():
            for norm in self.norms:
                norm.running_mean.normal_()
                norm.running_var.uniform_(0.5, 4)
                norm.weight.uniform_(0.5, 2)
                norm.bias.normal_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers[:-1], self.norms[:-1], strict=True):
            x = self.act(norm(layer(x)))
        return self.act(self.norms[-1](self.layers[-1](x)) + x)


@pytest.mark.parametrize("act", [nn.ReLU(), nn.ReLU6()], ids=repr)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_batch_norms_of_halves_round_no_more_than_eager(dtype: torch.dtype, act: nn.Module) -> None:
    model = Residual(act).eval().to(DEVICE, dtype)
    exact = copy.deepcopy(model).cpu().double()
    optimized = torch_graft.optimize(model)
    ours = theirs = 0.0
    for _ in range(4):
        x = torch.randn(2, 24, 17, 19).to(dtype)
        with torch.no_grad():
            wanted = exact(x.double())
            eager = model(x.to(DEVICE)).cpu().double()
            found = optimized(x.to(DEVICE)).cpu().double()
        ours += (found - wanted).square().mean().item()
        theirs += (eager - wanted).square().mean().item()
        assert_close(found, wanted, rtol=0.05, atol=0.05)
    assert ours <= theirs
    model.norms[0].weight.data.mul_(-1)
    with torch.no_grad():
        expected = exact.double()
        expected.norms[0].weight.mul_(-1)
        assert_close(
            optimized(x.to(DEVICE)).cpu().double(), expected(x.double()), rtol=0.05, atol=0.05
        )
