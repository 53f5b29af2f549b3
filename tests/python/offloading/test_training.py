# tests/python/offloading/test_training.py: an offloaded model trains on the CPU's parameters as the CPU does.
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

import torch_graft
from optimized_net import Net

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def pair(device: str, make: Callable[[], nn.Module] = Net) -> tuple[nn.Module, nn.Module]:
    model = make().train()
    return model, torch_graft.optimize(copy.deepcopy(model), mode="training", device=device)


def same_parameters(model: nn.Module, offloaded: nn.Module, of: str = "values") -> None:
    for (name, wanted), found in zip(model.named_parameters(), offloaded.parameters(), strict=True):
        a, b = (wanted, found) if of == "values" else (wanted.grad, found.grad)
        assert (a is None) == (b is None), name
        if a is not None and b is not None:
            assert b.device.type == "cpu"
            assert_close(b, a, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("where", ["graft", "ve"])
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9),
        lambda parameters: torch.optim.Adam(parameters, 1e-2, foreach=True),
        lambda parameters: torch.optim.AdamW(parameters, 1e-2, fused=True),
    ],
    ids=["SGD", "Adam", "fused AdamW"],
)
def test_steps_equal_the_cpus(optimizer: Callable[..., Any], where: str, device: str) -> None:
    models = pair(device if where == "graft" else where)
    steppers = [optimizer(model.parameters()) for model in models]
    for _ in range(5):
        x, target = torch.randn(8, 3, 8, 8), torch.randint(5, (8,))
        losses = []
        for model, stepper in zip(models, steppers, strict=True):
            stepper.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            losses.append(loss.detach())
        assert_close(losses[1], losses[0], rtol=1e-3, atol=1e-4)
        same_parameters(*models, of="gradients")
        for stepper in steppers:
            stepper.step()
    same_parameters(*models)
    for (name, wanted), found in zip(models[0].named_buffers(), models[1].buffers(), strict=True):
        assert_close(found, wanted, rtol=1e-3, atol=1e-4, msg=name)


def test_inputs_get_gradients(device: str) -> None:
    model, offloaded = pair(device)
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    (model(x * 2) * 3).sum().backward()
    (offloaded(twin * 2) * 3).sum().backward()
    assert_close(twin.grad, x.grad, rtol=1e-3, atol=1e-4)
    same_parameters(model, offloaded, of="gradients")


def test_gradients_accumulate_and_retained_graphs_go_again(device: str) -> None:
    models = pair(device, lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    for model in models:
        loss = model(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        (model(x).sum() * model(y).sum()).backward()
    same_parameters(*models, of="gradients")


def test_autograd_grad_hooks_and_frozen_weights(device: str) -> None:
    models = pair(device, lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    x = torch.randn(3, 4)
    for model in models:
        model[0].bias.requires_grad_(False)
        model[2].weight.register_hook(lambda gradient: gradient * 10)
    first, second = (
        torch.autograd.grad(model(x).sum(), [model[0].weight, model[2].weight]) for model in models
    )
    assert_close(second, first, rtol=1e-4, atol=1e-5)
    for frozen in (False, True, False):
        for model in models:
            model.zero_grad()
            model[2].requires_grad_(not frozen)
            model(x).square().sum().backward()
        same_parameters(*models, of="gradients")


def test_no_gradients_unless_asked(device: str) -> None:
    _, offloaded = pair(device)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        assert not offloaded(x).requires_grad
    inference = torch_graft.optimize(Net(), device=device)
    assert not inference(x.requires_grad_()).requires_grad


def test_training_and_evaluating_in_turn(device: str) -> None:
    models = pair(device)
    steppers = [torch.optim.SGD(model.parameters(), 0.1) for model in models]
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8)
        for model, stepper in zip(models, steppers, strict=True):
            model.train()
            stepper.zero_grad()
            model(x).square().mean().backward()
            stepper.step()
        with torch.no_grad():
            found = [model.eval()(x) for model in models]
        assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)


def test_clipping_scaling_and_accumulating(device: str) -> None:
    models = pair(device)
    inputs = [torch.randn(4, 3, 8, 8) for _ in range(2)]
    for model in models:
        for x in inputs:
            (model(x).square().mean() * 100).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        torch.optim.SGD(model.parameters(), 0.1).step()
    same_parameters(*models)


def test_a_written_argument_keeps_its_gradient(device: str) -> None:
    models = pair(device, lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2)))
    results = []
    for model in models:
        source = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        x = source * 2
        (model(x).sum() + x.square().sum()).backward()
        results.append((x.detach(), source.grad))
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)
    same_parameters(*models, of="gradients")


def test_the_digits_are_learnt(device: str) -> None:
    import digits

    images, labels, test_images, test_labels = digits.load()
    torch.manual_seed(0)
    model = torch_graft.optimize(digits.Net(), mode="training", device=device)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for start in range(0, 1280, 64):
        x, y = images[start : start + 64], labels[start : start + 64]
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(test_images).argmax(1) == test_labels).float().mean()
    assert right > 0.7
