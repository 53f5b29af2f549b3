# tests/python/compiler/test_training.py: what compiled forward graphs save, and when it goes.
"""Saved tensors lie as the device's library wants them, and go back while the backward graph runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from eager_comparison import close, launches_of
from torch_graft.compiler import reports, reset_reports

pytestmark = pytest.mark.one_mode


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    reset_reports()
    yield
    torch._dynamo.reset()


def layers() -> nn.Module:
    """Each saves 4 MiB or more of 2048 rows."""
    return nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(512, 512), nn.Tanh())))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16, affine=False), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip


def steps(device: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """A training step of six layers, compiled and eager."""
    torch.manual_seed(0)
    model, x = layers().to(device), torch.randn(2048, 512, device=device)

    def step(call: Any) -> None:
        model.zero_grad()
        call(x).sum().backward()

    compiled = torch.compile(model)
    return (lambda: step(compiled)), (lambda: step(model))


def peak(call: Callable[[], Any]) -> int:
    for _ in range(3):
        call()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    call()
    torch.accelerator.synchronize()
    return torch.accelerator.max_memory_allocated()


def test_saved_tensors_go_back_while_the_backward_graph_runs(device: str) -> None:
    ours, eager = (peak(step) for step in steps(device))
    assert ours <= 1.15 * eager, f"{ours / 2**20:.1f} MiB, eager {eager / 2**20:.1f} MiB"


def test_what_gives_saved_tensors_back_launches_half_as_often(device: str) -> None:
    ours, eager = (launches_of(step, device) for step in steps(device))
    assert 2 * ours <= eager, f"{ours} launches, eager {eager}"


def test_a_retained_graph_keeps_what_it_saved(device: str) -> None:
    torch.manual_seed(0)
    model, x = layers().to(device), torch.randn(2048, 512, device=device)
    loss = torch.compile(model)(x).sum()
    parameters = list(model.parameters())
    first = torch.autograd.grad(loss, parameters, retain_graph=True)
    rubbish = [torch.full_like(x, 5.0) for _ in range(8)]
    second = torch.autograd.grad(loss, parameters)
    assert len(rubbish) == 8
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def test_saved_images_are_channels_last(device: str) -> None:
    torch.manual_seed(0)
    model = images().to(device)
    other, x = copy.deepcopy(model), torch.randn(4, 3, 20, 18, device=device)
    result, wanted = torch.compile(other, fullgraph=True)(x), model(x)
    close([result], [wanted], "result")
    saved = [one for one in result.grad_fn.saved_tensors if one.dim() == 4 and one.size(1) >= 8]
    activations = [one for one in saved if one.size(0) == 4 and one.size(2) > 1]
    if device == "graft":  # whose library computes such images as they lie
        assert activations
        assert all(one.stride(1) == 1 for one in activations), [one.stride() for one in saved]
    for one in (result, wanted):
        (one * torch.arange(4, device=device)).sum().backward()
    for (name, ours), theirs in zip(other.named_parameters(), model.parameters(), strict=True):
        assert ours.grad is not None, name
        assert ours.grad.stride() == theirs.grad.stride(), name
        close([ours.grad], [theirs.grad], name)
    for (name, ours), theirs in zip(other.named_buffers(), model.buffers(), strict=True):
        close([ours], [theirs], name)


def test_images_of_any_size_train(device: str) -> None:
    torch.manual_seed(0)
    model = images().to(device)
    other = copy.deepcopy(model)
    compiled = torch.compile(other, dynamic=True)
    for size in (12, 20, 16):
        x = torch.randn(3, 3, size, size, device=device)
        result, wanted = compiled(x), model(x)
        close([result], [wanted], str(size))
        grads = [torch.autograd.grad(one.square().sum(), list(net.parameters()))
                 for one, net in ((result, other), (wanted, model))]  # fmt: skip
        close(list(grads[0]), list(grads[1]), str(size))


def check_compiled() -> None:
    refused = [one for one in reports() if one.counts() is None]
    assert not refused, refused


# Operators whose gradient's operator has a mask of what is wanted: the layer, and the input's sizes.
MASKED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "convolution": (lambda: nn.Conv2d(3, 4, 3), (2, 3, 6, 5)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (2, 3, 6, 5)),
    "layer norm": (lambda: nn.LayerNorm(5), (2, 3, 5)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    "attention": (lambda: nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4)),
}


@pytest.mark.parametrize("wanted", ["input", "weight", "bias", "input weight", "weight bias"])
@pytest.mark.parametrize("name", MASKED)
def test_gradients_are_those_that_are_wanted(name: str, wanted: str, device: str) -> None:
    torch.manual_seed(0)
    make, sizes = MASKED[name]
    model, x = make().to(device), torch.randn(sizes).to(device)
    for parameter, one in model.named_parameters():
        one.requires_grad_(any(word in parameter for word in wanted.split()))
    x.requires_grad_("input" in wanted)
    given = (x, x, x) if name == "attention" else (x,)
    into = [one for one in (x, *model.parameters()) if one.requires_grad]
    found = []
    for call in (torch.compile(model, fullgraph=True), model):
        result = call(*given)
        result = result[0] if name == "attention" else result
        found.append([result, *torch.autograd.grad(result.square().sum(), into)])
    close(found[0], found[1], name)
    check_compiled()


@pytest.mark.parametrize("of", ["query", "key", "value"])
def test_attention_gives_one_gradient(of: str, device: str) -> None:
    torch.manual_seed(0)
    given = {one: torch.randn(2, 2, 4, 8).to(device) for one in ("query", "key", "value")}
    given[of].requires_grad_()
    function = torch.nn.functional.scaled_dot_product_attention
    found = []
    for call in (torch.compile(function), function):
        found.append(torch.autograd.grad(call(**given).square().sum(), [given[of]])[0])
    close([found[0]], [found[1]], of)
    check_compiled()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["amax", "amin"])
def test_the_gradient_of_an_extremum_of_rounded_values(
    name: str, dtype: torch.dtype, device: str
) -> None:
    """It compares values with the stored extremum, which a half type has rounded."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return getattr(torch, name)(x.cos(), (1,))

    on_cpu = torch.linspace(-1.5, 1.5, 111).reshape(3, 37).to(dtype).requires_grad_()
    x = on_cpu.detach().to(device).requires_grad_()
    torch.compile(function, fullgraph=True)(x).sum().backward()
    function(on_cpu).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), on_cpu.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_decides_sees_rounded_values(dtype: torch.dtype, device: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * 1.0009765625) == x, (x * 3.0009765625).to(torch.int32)

    x = torch.linspace(1, 60, 500).to(dtype).to(device)
    got = torch.compile(function, fullgraph=True)(x)
    for one, expected in zip(got, function(x), strict=True):
        assert torch.equal(one, expected)
