"""The cases: what is timed, in which group, against which goal."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

import digits
import resnet50

Work = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """make(device) builds the inputs there and returns the call that is timed."""

    name: str
    goal: float
    make: Callable[[str], Work]
    pairs: int = 11


SIDE = 1024
TINY: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y, "mul_": lambda x, y: x.mul_(y), "relu": lambda x, y: torch.relu(x),
    "exp": lambda x, y: torch.exp(x), "add scalar": lambda x, y: x + 1.0,
    "sum": lambda x, y: x.sum(), "lt": lambda x, y: x < y, "fill_": lambda x, y: x.fill_(0.5),
    "copy_": lambda x, y: x.copy_(y), "zeros_like": lambda x, y: torch.zeros_like(x),
    "add out": lambda x, y: torch.add(x, x, out=y),
}  # fmt: skip
POINTWISE: dict[str, Callable[..., Any]] = {
    "exp": lambda x, y: torch.exp(x), "tanh": lambda x, y: torch.tanh(x),
    "gelu": lambda x, y: F.gelu(x), "sigmoid": lambda x, y: torch.sigmoid(x),
    "silu": lambda x, y: F.silu(x), "add": lambda x, y: x + y, "mul": lambda x, y: x * y,
    "relu": lambda x, y: torch.relu(x), "where": lambda x, y: torch.where(x > 0, x, y),
    "addcmul": lambda x, y: torch.addcmul(x, x, y), "clamp": lambda x, y: x.clamp(-1, 1),
    "sqrt": lambda x, y: torch.sqrt(y), "transposed copy": lambda x, y: x.t().contiguous(),
    "to float16": lambda x, y: x.half(), "add row": lambda x, y: x + y[0],
}  # fmt: skip
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y: x.sum(), "sum dim 0": lambda x, y: x.sum(0),
    "sum dim 1": lambda x, y: x.sum(1), "mean dim 1": lambda x, y: x.mean(1),
    "max dim 1": lambda x, y: x.max(1), "argmax": lambda x, y: x.argmax(),
    "argmax dim 1": lambda x, y: x.argmax(1), "softmax": lambda x, y: x.softmax(1),
    "log_softmax": lambda x, y: x.log_softmax(1),
    "layer_norm": lambda x, y: F.layer_norm(x, (SIDE,)),
}  # fmt: skip
RANDOM: dict[str, Callable[..., Any]] = {
    "dropout": lambda x, y: F.dropout(x, 0.5), "randn": lambda x, y: torch.randn_like(x),
    "rand": lambda x, y: torch.rand_like(x),
}  # fmt: skip


def on_square(call: Callable[..., Any], side: int) -> Callable[[str], Work]:
    """The call on two square float32 matrices, the second one positive."""

    def make(device: str) -> Work:
        source = torch.Generator().manual_seed(1)
        x, y = torch.randn(2, side, side, generator=source).to(device)
        y = y.abs()
        x, y = (x[0], y[0]) if side == 1 else (x, y)
        return lambda: call(x, y)

    return make


def without_gradients(make: Callable[[str], Work]) -> Callable[[str], Work]:
    def make_inner(device: str) -> Work:
        work = make(device)

        def call() -> Any:
            with torch.inference_mode():
                return work()

        return call

    return make_inner


def resnet(training: bool, batch: int, mixed: bool = False) -> Callable[[str], Work]:
    def make(device: str) -> Work:
        model, images, labels = resnet50.seeded(device, batch)
        model.train(training)
        optimizer = resnet50.momentum(model)
        precision = functools.partial(torch.autocast, device, torch.bfloat16, mixed)
        if training:
            return lambda: resnet50.step(model, optimizer, images, labels, precision)
        return lambda: resnet50.forward(model, images)

    return make


def fused_adamw(device: str) -> Work:
    """One step over ResNet-50's 161 parameters."""
    model, _, _ = resnet50.seeded(device, 1)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
    return optimizer.step


def backward_of_add(device: str) -> Work:
    x = torch.ones(1, device=device, requires_grad=True)
    y, gradient = x + 1, torch.ones(1, device=device)
    return lambda: torch.autograd.grad(y, x, gradient, retain_graph=True)


COPIED = 64 << 20


def copies(to_device: bool) -> Callable[[str], Work]:
    """64 MiB between pinned memory and the device, against memcpy() of as much."""

    def make(device: str) -> Work:
        host = torch.ones(COPIED, dtype=torch.uint8)
        other = torch.zeros_like(host)
        if device == "cpu":
            return lambda: ctypes.memmove(other.data_ptr(), host.data_ptr(), COPIED)
        pinned, there = host.pin_memory(), other.to(device)
        to, source = (there, pinned) if to_device else (pinned, there)
        return lambda: to.copy_(source, non_blocking=True)

    return make


def replay(device: str) -> Work:
    """A hundred operations on one element: a captured graph, or eager where nothing captures."""
    x = torch.ones(1, device=device)

    def work() -> None:
        for _ in range(50):
            x.mul_(0.5)
            x.add_(1)

    if device == "cpu":
        return work
    graph = torch.accelerator.Graph()
    with torch.Stream(device=device), graph:
        work()
    return graph.replay


def digits_epoch(device: str) -> Work:
    images, labels, _, _ = digits.load()
    torch.manual_seed(0)
    model = digits.Net().to(device)
    return lambda: digits.steps(model, device, images, labels, 1, 0, False)


def family(group: str, goal: float, calls: dict[str, Any], side: int) -> list[Case]:
    return [Case(f"{group} {name}", goal, on_square(call, side)) for name, call in calls.items()]


CASES: dict[str, Case] = {
    case.name: case
    for case in [
        *family("tiny", 1.3, TINY, 1),
        Case("tiny item", 1.3, on_square(lambda x, y: x.item(), 1)),
        Case("tiny mm 2x2", 1.5, on_square(torch.mm, 2)),
        Case("tiny backward of add", 2.0, backward_of_add),
        *family("1024²", 1.0, POINTWISE | REDUCTIONS, SIDE),
        *family("1024²", 0.3, RANDOM, SIDE),
        *(Case(f"gemm {n}", 1.1, on_square(torch.mm, n)) for n in (512, 1024, 2048)),
        Case("replay of 100 tiny operations", 0.33, replay),
        Case("fused AdamW of ResNet-50", 0.7, fused_adamw),
        Case("pinned copy to the device", 1.11, copies(True)),
        Case("pinned copy to the host", 1.11, copies(False)),
        Case("digits training epoch", 1.2, digits_epoch),
        Case("ResNet-50 inference b1", 1.1, resnet(False, 1)),
        Case("ResNet-50 inference b16", 0.85, resnet(False, 16), pairs=7),
        Case("ResNet-50 training b8", 1.0, resnet(True, 8), pairs=7),
        Case("ResNet-50 training b8 bf16 autocast", 1.0, resnet(True, 8, True), pairs=7),
    ]
}
# Peak memory: the device's against the resident growth of the other side.
MEMORY = {"ResNet-50 inference b16": 1.0, "ResNet-50 training b8": 1.0}

# What one call on one element is made of, from the inside out; each line adds a layer.
LAYERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "python call": lambda x, y, out: x.dim(),
    "view (dispatch)": lambda x, y, out: x.view(1),
    "empty (allocate)": lambda x, y, out: torch.empty_like(x),
    "fill_ (a command)": lambda x, y, out: out.fill_(1.0),
    "relu_ (unary, in place)": lambda x, y, out: out.relu_(),
    "add_ (binary, in place)": lambda x, y, out: out.add_(y),
    "add out= (no allocation)": lambda x, y, out: torch.add(x, y, out=out),
    "add": lambda x, y, out: torch.add(x, y),
    "add scalar": lambda x, y, out: torch.add(x, 2.0),
    "sum": lambda x, y, out: x.sum(),
}


def layer(name: str, device: str) -> Work:
    x, y, out = (torch.ones(1, device=device) for _ in range(3))
    call = LAYERS[name]
    return lambda: call(x, y, out)
