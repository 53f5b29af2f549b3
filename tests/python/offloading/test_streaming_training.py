# tests/python/offloading/test_streaming_training.py: weights that stream through, forward and backward.
from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import torch_graft
from optimized_net import Net
from torch_graft.offloading import residence

pytestmark = [pytest.mark.any_driver, pytest.mark.both_modes]
MIB = 2**20


@pytest.fixture(autouse=True)
def _all_stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(residence, "ALWAYS", 0)
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def pair(device: str, make: Callable[[], nn.Module] = Net) -> tuple[nn.Module, nn.Module]:
    model = make().train()
    given = {"mode": "training", "device": device, "resident": 0}
    return model, torch_graft.optimize(copy.deepcopy(model), **given)


def same(models: tuple[nn.Module, nn.Module], of: str = "values") -> None:
    for (name, wanted), found in zip(
        models[0].named_parameters(), models[1].parameters(), strict=True
    ):
        a, b = (wanted, found) if of == "values" else (wanted.grad, found.grad)
        assert (a is None) == (b is None), name
        if a is not None:
            assert_close(b, a, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def perceptron() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


@pytest.mark.parametrize("where", ["graft", "ve"])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_steps_equal_the_cpus(name: str, where: str, device: str) -> None:
    models = pair(device if where == "graft" else where)
    steppers = [getattr(torch.optim, name)(model.parameters(), 1e-2) for model in models]
    for _ in range(4):
        x, target = torch.randn(8, 3, 8, 8), torch.randint(5, (8,))
        for model, stepper in zip(models, steppers, strict=True):
            stepper.zero_grad()
            F.cross_entropy(model(x), target).backward()
        same(models, of="gradients")
        for stepper in steppers:
            stepper.step()
    same(models)
    for wanted, found in zip(models[0].buffers(), models[1].buffers(), strict=True):
        assert_close(found, wanted, rtol=1e-3, atol=1e-4)


class Sequences(nn.Module):
    """Tied weights, attention, a recurrent layer, a weight of views and one that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.attention = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.lstm = nn.LSTM(16, 16)
        self.factors = nn.Parameter(torch.randn(2, 16))
        self.frozen = nn.Parameter(torch.rand(16), requires_grad=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.frozen.clamp_(0.2, 0.8)
        x = self.attention(self.embedding(tokens))
        x, _ = self.lstm(x)
        x = x * self.factors[0] * self.frozen + self.factors[1].exp()
        return F.linear(x, self.embedding.weight)


def test_weights_used_in_many_ways(device: str) -> None:
    models = pair(device, Sequences)
    steppers = [torch.optim.SGD(model.parameters(), 0.1) for model in models]
    for _ in range(3):
        tokens = torch.randint(11, (3, 5))
        for model, stepper in zip(models, steppers, strict=True):
            stepper.zero_grad()
            model(tokens).square().mean().backward()
        same(models, of="gradients")
        for stepper in steppers:
            stepper.step()
    same(models)


def test_few_weights_and_gradients_are_on_the_device_at_once(
    device: str, module: Any, allocated: Callable[[], int]
) -> None:
    models = pair(device, lambda: nn.Sequential(*(nn.Linear(512, 512) for _ in range(12))))
    x, before = torch.randn(4, 512), allocated()
    for _ in range(3):
        module.reset_peak_memory_stats()
        loss = models[1](x).square().sum()
        assert module.max_memory_allocated() - before < 2.5 * MIB
        assert allocated() - before < MIB / 2, "activations alone wait for the backward pass"
        loss.backward()
        assert module.max_memory_allocated() - before < 6 * MIB, "two weights, two gradients"
        del loss
        assert allocated() == before
    models[0].zero_grad()
    for _ in range(3):
        models[0](x).square().sum().backward()
    same(models, of="gradients")


def test_graphs_that_are_kept_and_parts_of_gradients(device: str) -> None:
    models = pair(device, perceptron)
    x, y = torch.randn(3, 4), torch.randn(5, 4)
    parts = []
    for model in models:
        loss = model(x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        (model(x).sum() * model(y).sum()).backward()
        inputs = x.clone().requires_grad_()
        wanted = [model[0].bias, model[2].weight, inputs]
        parts.append(torch.autograd.grad(model(inputs).square().sum(), wanted))
        model[0].requires_grad_(False)
        model(x).square().sum().backward()
        with torch.no_grad():
            assert not model(x).requires_grad
        model[0].requires_grad_(True)
        model(x).square().sum().backward()
    assert_close(parts[1], parts[0], rtol=1e-4, atol=1e-5)
    same(models, of="gradients")


def test_second_derivatives(device: str) -> None:
    models, results = pair(device, perceptron), []
    for model in models:
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        (first,) = torch.autograd.grad(model(x).sum(), [x], create_graph=True)
        first.square().sum().backward()
        results.append((first.detach(), x.grad))
    assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    same(models, of="gradients")


def test_passes_of_several_threads(device: str) -> None:
    models, inputs = pair(device, perceptron), [torch.randn(3, 4) for _ in range(4)]
    for x in inputs:
        models[0](x).square().sum().backward()

    def step(x: torch.Tensor) -> None:
        models[1](x).square().sum().backward()

    threads = [threading.Thread(target=step, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(models, of="gradients")


def test_what_is_computed_again_in_the_backward_pass_is_refused(device: str) -> None:
    """A checkpoint runs the layer again outside the call, where its weights have no memory."""

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = perceptron()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.layers, x, use_reentrant=False)

    _, offloaded = pair(device, Checkpointed)
    x = torch.randn(3, 4)
    with pytest.raises(RuntimeError, match="streamed through the device"):
        offloaded(x)
    with torch.no_grad():
        assert offloaded(x).shape == (3, 2)
