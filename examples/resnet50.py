"""ResNet-50 with seeded random weights: forward and a training step, compared with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from record import Record, Side, metered, standalone

SIZE, CLASSES, SEED = 224, 1000, 0


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions beside a shortcut (He et al. 2015, with the stride on the 3x3)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """The 50-layer residual network for 224 x 224 images."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        blocks: list[nn.Module] = []
        inputs = 64
        for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(depth):
                blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(images)))


def seeded(device: str, batch: int, dtype: torch.dtype = torch.float32) -> Any:
    """Returns the same model, images and labels on every device."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = ResNet50()
    images = torch.randn(batch, 3, SIZE, SIZE, generator=generator)
    labels = torch.randint(CLASSES, (batch,), generator=generator)
    return model.to(device, dtype), images.to(device, dtype), labels.to(device)


def forward(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return model.eval()(images)


def step(
    model: nn.Module, optimizer: Any, images: torch.Tensor, labels: torch.Tensor,
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Any:  # fmt: skip
    """One training step, its forward pass under precision(); returns the loss, not yet read."""
    optimizer.zero_grad()
    with precision():
        loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def compute(device: str, batch: int, dtype: str = "float32") -> dict[str, Any]:
    """Forward and one step: logits, loss, gradients and what they change, on the CPU as float64."""
    model, images, labels = seeded(device, batch, getattr(torch, dtype))
    logits = forward(model, images)
    optimizer = momentum(model.train())
    with metered(device) as meter:
        loss = step(model, optimizer, images, labels)

    def host(tensor: torch.Tensor) -> Any:
        return tensor.detach().cpu().double().numpy()

    found = {"logits": host(logits), "loss": host(loss)}
    for name, parameter in model.named_parameters():
        found[f"gradient of {name}"] = host(parameter.grad)
        found[f"{name} after the step"] = host(parameter)
    for name, buffer in model.named_buffers():
        found[f"{name} after the step"] = host(buffer)
    return {"found": found, "meter": meter}


_ready: dict[tuple[bool, int], Any] = {}


def sample(device: str, training: bool, batch: int) -> Any:
    """Cost of one forward or one training step; the model is built and warm from call two on."""
    key = (training, batch)
    if key not in _ready:
        _ready.clear()
        model, images, labels = seeded(device, batch)
        optimizer = momentum(model)
        _ready[key] = (model.train(training), optimizer, images, labels)
    model, optimizer, images, labels = _ready[key]
    with metered(device) as meter:
        step(model, optimizer, images, labels) if training else forward(model, images)
    return meter


def errors(found: dict[str, Any], exact: dict[str, Any]) -> dict[str, float]:
    """Relative error of each tensor in the 2-norm."""
    norm = np.linalg.norm
    return {k: float(norm(found[k] - v) / (norm(v) + 1e-30)) for k, v in exact.items()}


def run(
    device: str, against: str, out: Path | None = None, batch: int = 4, pairs: int = 5
) -> Record:
    """Compares both devices with a float64 run: each tensor may be off by what rounding costs.

    A ReLU whose input rounds to the other sign changes gradients by up to 2 % on any device, so no
    fixed tolerance is both sound and tight; the peer's own error is.
    """
    with Side(against) as peer, Side(device) as side:
        exact = peer.call(compute, batch, "float64")["found"]
        theirs = errors(peer.call(compute, batch)["found"], exact)
        computed = side.call(compute, batch)
        ours = errors(computed["found"], exact)
        costs: dict[tuple[bool, int], tuple[list[Any], list[Any]]] = {}
        for key in ((False, 1), (True, batch)):
            both: tuple[list[Any], list[Any]] = ([], [])
            for _ in range(pairs + 1):
                both[0].append(side.call(sample, *key))
                both[1].append(peer.call(sample, *key))
            costs[key] = both[0][1:], both[1][1:]
    time = {k: [median(m.seconds for m in half) for half in v] for k, v in costs.items()}
    meters = [computed["meter"], *costs[True, batch][0]]
    training = {op: n for m in meters for op, n in m.fallbacks.items()}
    inference = {op: n for m in costs[False, 1][0] for op, n in m.fallbacks.items()}
    checks = {}
    for kind in ("logits", "loss", "gradient", "after the step"):
        part = [k for k in exact if kind in k]
        far = [k for k in part if not ours[k] <= 3 * theirs[k] + 1e-5]
        worst = max(part, key=lambda k: ours[k] / (theirs[k] + 1e-5))
        checks[
            f"{kind}: {len(part) - len(far)} of {len(part)} as near to float64 as {against}'s, "
            f"to thrice and 1e-5 (worst {ours[worst]:.1e} beside {theirs[worst]:.1e})"
        ] = not far
    checks["training steps had no fallback"] = not training
    infer, train = time[False, 1], time[True, batch]
    return Record(
        "(b) ResNet-50",
        f"forward {1e3 * infer[0]:.0f} ms an image ({against} {1e3 * infer[1]:.0f}), "
        f"training {1e3 * train[0] / batch:.0f} ms an image ({against} "
        f"{1e3 * train[1] / batch:.0f})",
        train[0], train[1], sum(m.native for m in meters), inference | training,
        max(m.peak for m in meters), checks,
    )  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(standalone(run, __doc__))
