# tests/python/offloading/test_saved_weights.py: a backward pass whose weights changed is refused as on the CPU.
"""PyTorch refuses where a tensor that was saved for the backward pass had a counted write since."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import torch_graft
from optimized_net import Net
from torch_graft.offloading import residence

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]
MESSAGE = "has been modified by an inplace operation"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(residence, "ALWAYS", 0)
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture(params=["all", 0], ids=["resident", "streamed"])
def offload(request: pytest.FixtureRequest, device: str) -> Callable[[nn.Module], nn.Module]:
    def make(model: nn.Module) -> nn.Module:
        given = {"mode": "training", "device": device, "resident": request.param}
        return torch_graft.optimize(copy.deepcopy(model), **given)

    return make


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3), (2, 3, 8, 8)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
    "batch norm, evaluating": (lambda: nn.BatchNorm2d(3).eval(), (4, 3, 5, 5)),
    "PReLU": (lambda: nn.PReLU(3), (2, 3)),
    "bilinear": (lambda: nn.Sequential(Twice(), nn.Linear(3, 2)), (2, 4)),
}


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bilinear = nn.Bilinear(4, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bilinear(x, x)


def refused(model: nn.Module, name: str, x: torch.Tensor) -> bool:
    """Whether the backward pass is, after a write of the weight of that name."""
    given = x.clone().requires_grad_()
    loss = model(given).square().sum()
    with torch.no_grad():
        model.get_parameter(name).add_(1)
    told = ""
    try:
        loss.backward()
    except RuntimeError as error:
        told = str(error)
    assert told == "" or MESSAGE in told
    return told != ""


@pytest.mark.parametrize("layer", LAYERS)
def test_each_weight_as_on_the_cpu(layer: str, offload: Callable[..., nn.Module]) -> None:
    make, shape = LAYERS[layer]
    x = torch.randn(shape)
    for name, _ in make().named_parameters():
        model = make()
        offloaded = offload(model)
        wanted = refused(model, name, x)
        assert refused(offloaded, name, x) == wanted, name
        assert refused(offloaded, name, x) == wanted, f"{name}, again"


def test_a_step_between_the_passes(offload: Callable[..., nn.Module]) -> None:
    offloaded = offload(Net().train())
    optimizer = torch.optim.SGD(offloaded.parameters(), 0.1)
    x = torch.randn(2, 3, 8, 8)
    offloaded(x).sum().backward()
    early = offloaded(x).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match=MESSAGE):
        early.backward()
    early = offloaded(x).sum()
    optimizer.step()
    with torch.no_grad():
        offloaded(x)
    with pytest.raises(RuntimeError, match=MESSAGE):
        early.backward()
    offloaded(x).sum().backward()


def test_writes_that_are_not_counted_pass_as_on_the_cpu(offload: Callable[..., nn.Module]) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    x, gradients = torch.randn(2, 4), []
    for one in (model, offload(model)):
        loss = one(x).square().sum()
        one[1].weight.data.mul_(1.0)
        with torch.no_grad():
            one(x)
        loss.backward()
        gradients.append([parameter.grad for parameter in one.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


class Clamped(nn.Module):
    """Writes its weight before it uses it, in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4))
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.weight.clamp_(-0.5, 0.5)
        return self.norm(nn.functional.linear(x, self.weight))


def test_what_a_call_writes_is_counted_once(offload: Callable[..., nn.Module]) -> None:
    model = Clamped().train()
    offloaded, x = offload(model), torch.randn(5, 4, requires_grad=True)
    for _ in range(3):
        for one in (model, offloaded):
            one.zero_grad()
            one(x).square().sum().backward()
        assert offloaded.weight._version == model.weight._version
        torch.testing.assert_close(offloaded.weight, model.weight)
        torch.testing.assert_close(offloaded.weight.grad, model.weight.grad, rtol=1e-4, atol=1e-4)


def test_passes_in_turn_are_no_false_alarm(offload: Callable[..., nn.Module]) -> None:
    """Two forward passes, then both backward passes: running statistics change in between."""
    model = Net().train()
    offloaded, gradients = offload(model), []
    x, y = torch.randn(4, 3, 8, 8), torch.randn(4, 3, 8, 8)
    for one in (model, offloaded):
        versions = [parameter._version for parameter in one.parameters()]
        losses = [one(x).square().mean(), one(y).mean()]
        for loss in losses:
            loss.backward()
        assert [parameter._version for parameter in one.parameters()] == versions
        gradients.append([parameter.grad for parameter in one.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-3, atol=1e-4)
