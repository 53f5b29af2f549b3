"""The models that compilers are timed on: each case builds its call around a compiled module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import resnet50
from models import gpt2_model, perceptron, stepping

Work = Callable[[], Any]
Wrap = Callable[[nn.Module], nn.Module]


@dataclass(frozen=True)
class Case:
    """make(device, wrap) builds the model, hands it to wrap and returns the call that is timed.

    goal: of the ratio to the best of the others. overhead: µs of a call at most, where it is the
    calls that are measured. opencl: the goal beside PoCL's own eager, where there is one.
    """

    name: str
    goal: float
    make: Callable[[str, Wrap], Work]
    training: bool = False
    dynamic: bool | None = None
    overhead: float | None = None
    opencl: float | None = None


def inference(build: Callable[[], tuple[nn.Module, list[Any]]],
              dtype: torch.dtype = torch.float32) -> Callable[[str, Wrap], Work]:  # fmt: skip
    """A forward pass of build()'s model over its arguments."""

    def make(device: str, wrap: Wrap) -> Work:
        torch.manual_seed(0)
        model, arguments = build()
        model = wrap(model.eval().to(device, dtype))
        kinds = [dtype if one.is_floating_point() else one.dtype for one in arguments]
        given = [one.to(device, kind) for one, kind in zip(arguments, kinds, strict=True)]

        def call() -> Any:
            with torch.no_grad():
                return model(*given)

        return call

    return make


def training(
    build: Callable[[], tuple[nn.Module, list[Any]]],
    optimizer: Callable[..., torch.optim.Optimizer], loss: Callable[[Any], Any],
) -> Callable[[str, Wrap], Work]:  # fmt: skip
    """A step; loss() takes the model's result."""

    def make(device: str, wrap: Wrap) -> Work:
        torch.manual_seed(0)
        plain, arguments = build()
        plain = plain.train().to(device)
        given = [one.to(device) for one in arguments]
        stepper, model = optimizer(plain.parameters()), wrap(plain)
        return stepping(stepper, lambda: loss(model(*given)))

    return make


def resnet(batch: int) -> tuple[nn.Module, list[Any]]:
    model, images, _ = resnet50.seeded("cpu", batch)
    return model, [images]


def separable(inputs: int, outputs: int, stride: int) -> nn.Module:
    """A depthwise convolution and a pointwise one, each with batch norm and a clamp."""
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs), nn.ReLU6(),
        nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6(),
    )  # fmt: skip


def mobile(batch: int) -> tuple[nn.Module, list[Any]]:
    widths = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
              (256, 512, 2), *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1)]  # fmt: skip
    stem = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000)]
    model = nn.Sequential(*stem, *(separable(*one) for one in widths), *head)
    return model, [torch.randn(batch, 3, 224, 224)]


class Logits(nn.Module):
    """A language model as a function of tokens alone; with targets it returns the loss."""

    def __init__(self, model: nn.Module, with_loss: bool = False) -> None:
        super().__init__()
        self.model, self.with_loss = model, with_loss

    def forward(self, tokens: torch.Tensor) -> Any:
        found = self.model(tokens, labels=tokens) if self.with_loss else self.model(tokens)
        return found[0]


class Decoder(nn.Module):
    """One token of GPT-2 after a past: keys and values of all layers go in and come out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: torch.Tensor, *past: torch.Tensor) -> list[torch.Tensor]:
        from transformers import DynamicCache

        cache = DynamicCache(zip(past[::2], past[1::2], strict=True))
        logits = self.model(token, past_key_values=cache, use_cache=True)[0]
        return [logits, *(part for one in cache.layers for part in (one.keys, one.values))]


def gpt2(batch: int, with_loss: bool = False) -> tuple[nn.Module, list[Any]]:
    return Logits(gpt2_model(), with_loss), [torch.randint(50257, (batch, 128))]


def bert() -> tuple[nn.Module, list[Any]]:
    from transformers import BertConfig, BertModel

    return Logits(BertModel(BertConfig())), [torch.randint(30522, (4, 128))]


def decode(device: str, wrap: Wrap) -> Work:
    """Eight tokens, one at a time, after a past of 64."""
    torch.manual_seed(0)
    model = wrap(Decoder(gpt2_model().eval()).to(device))
    first = torch.ones(1, 1, dtype=torch.int64, device=device)
    start = [torch.randn(1, 12, 64, 64).to(device) for _ in range(24)]

    def call() -> Any:
        token, past = first, start
        with torch.no_grad():
            for _ in range(8):
                logits, *past = model(token, *past)
                token = logits[:, -1:].argmax(-1)
        return token

    return call


def mlp(batch: int = 128) -> tuple[nn.Module, list[Any]]:
    return perceptron(), [torch.randn(batch, 784)]


def sweep(device: str, wrap: Wrap) -> Work:
    """The perceptron over batches of 2 to 1024."""
    torch.manual_seed(0)
    model = wrap(mlp()[0].eval().to(device))
    batches = [torch.randn(1 << n, 784).to(device) for n in range(1, 11)]

    def call() -> Any:
        with torch.no_grad():
            return [model(one) for one in batches]

    return call


class Many(nn.Module):
    """An addition that depends on many parameters of one element."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.cat(list(self.all)).sum()


def many() -> tuple[nn.Module, list[Any]]:
    return Many(161), [torch.ones(1)]


def first_class(logits: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(
        logits, torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    )


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4)


HALF = torch.bfloat16
CASES: dict[str, Case] = {
    case.name: case
    for case in [
        Case("1 operation", 1.0, inference(lambda: (nn.ReLU(), [torch.ones(1)])), overhead=10.0),
        Case("161 parameters", 1.0, inference(many), overhead=30.0),
        Case("MLP inference", 0.95, inference(mlp)),
        Case("MLP training", 0.9, training(mlp, sgd, first_class), training=True),
        Case("MLP, batches of 2 to 1024", 0.95, sweep, dynamic=True),
        Case("depthwise CNN b1", 0.9, inference(lambda: mobile(1))),
        Case("ResNet-50 b1", 1.05, inference(lambda: resnet(1)), opencl=0.7),
        Case("ResNet-50 b16", 1.05, inference(lambda: resnet(16))),
        Case("ResNet-50 b1 bf16", 1.05, inference(lambda: resnet(1), HALF)),
        Case("ResNet-50 b16 bf16", 1.05, inference(lambda: resnet(16), HALF)),
        Case("GPT-2 b4 s128", 0.95, inference(lambda: gpt2(4)), opencl=0.7),
        Case("GPT-2 b4 s128 bf16", 0.95, inference(lambda: gpt2(4), HALF)),
        Case("GPT-2 decoding 8 tokens", 0.95, decode),
        Case("BERT-base b4 s128", 0.95, inference(bert)),
        Case("ResNet-50 training b8", 0.9, training(lambda: resnet(8), sgd, first_class),
             training=True),
        Case("GPT-2 training b2 s128", 0.9, training(lambda: gpt2(2, True), adamw, lambda x: x),
             training=True),
    ]
}  # fmt: skip
