# tests/python/deployment/test_training_refusals.py: steps of training that no file can have.
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import torch_graft
from steps_in_process import batches, loss_of, network
from torch_graft.deployment.traced_call import NotDeployable

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def refusal(device: str, folder: Path, **changed: Any) -> str:
    """Why a step is refused, with a model, loss, optimizer or inputs of the test's."""
    model = changed.get("model", network()).to(device)
    optimizer = changed.get("optimizer", lambda one: torch.optim.SGD(one, lr=0.1))
    path = folder / "never.graft"
    with pytest.raises(NotDeployable) as error:
        torch_graft.deploy_training_step(
            model, changed.get("loss", loss_of), optimizer(model.parameters()),
            changed.get("inputs", batches(device, 1)[0]), path,
        )  # fmt: skip
    assert not path.exists()
    return str(error.value)


def branching(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.mean() > 0:
        return loss_of(model, x, y)
    return loss_of(model, -x, y)


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = network(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(
            self.inner, x, use_reentrant=False, preserve_rng_state=False
        )


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = network(), 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return self.inner(x)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        one = self.head(x)[None, None]
        return F.scaled_dot_product_attention(one, one, one, dropout_p=0.5)[0, 0]


def test_what_is_no_graph_is_refused(device: str, tmp_path: Path) -> None:
    told = refusal(device, tmp_path, optimizer=torch.optim.LBFGS)
    assert "LBFGS computes the loss several times in a step" in told
    told = refusal(device, tmp_path, loss=branching)
    assert "a step of Sequential with SGD is not one graph" in told
    assert f"(test_training_refusals.py:{branching.__code__.co_firstlineno + 1})" in told
    told = refusal(device, tmp_path, model=Checkpointed())
    assert "gradients draw random numbers" in told
    told = refusal(device, tmp_path, model=Counting())
    assert "a step changes calls of Counting from 0 to 1" in told
    told = refusal(device, tmp_path, model=Dropping())
    assert "needs PyTorch for" in told
    assert "attention_overrideable" in told
    assert f"test_training_refusals.py:{Dropping.forward.__code__.co_firstlineno + 2}" in told
    sgd = torch.optim.SGD
    told = refusal(device, tmp_path, optimizer=lambda one: sgd(one, lr=1, momentum=1, dampening=1))
    assert "SGD begins its momentum_buffer with the first gradient" in told


def test_what_trains_nothing_is_refused(device: str, tmp_path: Path) -> None:
    frozen = network().eval().requires_grad_(False)
    assert "there is nothing to train" in refusal(device, tmp_path, model=frozen)
    told = refusal(device, tmp_path, loss=lambda model, x, y: x.mean())
    assert "the loss depends on no parameter that the optimizer trains" in told
    other = network().to(device)
    told = refusal(device, tmp_path, loss=lambda model, x, y: loss_of(other, x, y))
    assert "the loss depends on no parameter" in told
    told = refusal(device, tmp_path, optimizer=lambda _: torch.optim.SGD(other.parameters()))
    assert "SGD has a parameter of sizes [16, 6]" in told
    assert "that is none of Sequential's" in told


def test_losses_that_are_none_are_refused(device: str, tmp_path: Path) -> None:
    told = refusal(device, tmp_path, loss=lambda model, x, y: model(x))
    assert "a tensor of sizes [8, 3] as the loss" in told
    told = refusal(device, tmp_path, loss=lambda model, x, y: {"scores": model(x)})
    assert "gave a NoneType as the loss" in told
    told = refusal(device, tmp_path, loss=lambda model, x, y: (loss_of(model, x, y), x))
    assert "is an argument or a weight" in told
    model = network()

    def closing(given: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return loss_of(given, x, y) + model[0].weight.sum()

    assert "uses 0.weight without taking it" in refusal(device, tmp_path, model=model, loss=closing)


def test_hooks_are_refused(device: str, tmp_path: Path) -> None:
    model = network()
    model[0].weight.register_hook(lambda gradient: gradient * 2)
    assert "0.weight has hooks" in refusal(device, tmp_path, model=model)

    def hooked(given: Any) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(given, lr=0.1)
        optimizer.register_step_pre_hook(lambda *_: None)
        return optimizer

    assert "SGD has hooks of steps" in refusal(device, tmp_path, optimizer=hooked)


def test_wrong_arguments(device: str, tmp_path: Path) -> None:
    x, y = batches(device, 1)[0]
    path = tmp_path / "never.graft"
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def deploy(given: Any, loss: Any, stepping: Any, inputs: Any = (x, y)) -> None:
        torch_graft.deploy_training_step(given, loss, stepping, inputs, path)

    with pytest.raises(ValueError, match="is not on a Graft device"):
        deploy(model, loss_of, optimizer, (x.cpu(), y.cpu()))
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module, got a function"):
        deploy(loss_of, model, optimizer)
    model.to(device)
    with pytest.raises(TypeError, match=r"loss must be a function of \(model, \*inputs\)"):
        deploy(model, None, optimizer)
    with pytest.raises(TypeError, match=r"must be a torch\.optim\.Optimizer, got a float"):
        deploy(model, loss_of, 0.1)
    with pytest.raises(TypeError, match=r"the example inputs do not fit loss_of\(\)"):
        deploy(model, loss_of, optimizer, (x,))
    with pytest.raises(ValueError, match="optimized for inference"):
        deploy(torch_graft.optimize(model), loss_of, optimizer)
    assert not path.exists()
