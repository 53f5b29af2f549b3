"""Trains a small CNN on digits, makes its layers int8 in two ways, compares accuracy, size and agreement."""

from __future__ import annotations

import argparse
import copy
import io
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.ao import quantization as ao

from digits import Net, correct, load, logits_of

warnings.filterwarnings("ignore", category=UserWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning)


class Bounded(nn.Module):
    """The trained network between the points where its numbers become integers and come back."""

    def __init__(self, trained: Net) -> None:
        super().__init__()
        self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
        self.features, self.head = copy.deepcopy(trained.features), copy.deepcopy(trained.head)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.dequant(self.head(self.features(self.quant(images))))


def dynamic(trained: Net) -> nn.Module:
    """Linear layers with int8 weights; the scale of each input is chosen as it comes."""
    return ao.quantize_dynamic(copy.deepcopy(trained).eval(), {nn.Linear}, torch.qint8)


def static(trained: Net, calibration: torch.Tensor) -> nn.Module:
    """Every layer on integers; the scales of the inputs come from a few images."""
    model = Bounded(trained).eval()
    names = [
        ["features.0", "features.1", "features.2"],
        ["features.4", "features.5", "features.6"],
        ["head.1", "head.2"],
    ]
    model = ao.fuse_modules(model, names)
    model.qconfig = ao.get_default_qconfig("x86")
    ao.prepare(model, inplace=True)
    logits_of(model, calibration)
    return ao.convert(model)


def size(model: nn.Module) -> int:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return len(file.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="graft")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    options = parser.parse_args()
    device = options.device
    train_x, train_y, test_x, test_y = (tensor.to(device) for tensor in load())
    torch.manual_seed(0)
    model = Net().to(device)
    train(model, train_x, train_y, options.epochs)

    lines = []
    expected = logits_of(model, test_x)
    for name, made in (
        ("float32", model),
        ("int8 dynamic", dynamic(model)),
        ("int8 static", static(model, train_x[:256])),
    ):
        logits = logits_of(made, test_x)
        accuracy = correct(logits, test_y) / len(test_y)
        same = (logits.argmax(1) == expected.argmax(1)).float().mean().item()
        lines.append(
            f"{name:13} accuracy {accuracy:.3f}  same answers {same:.3f}  {size(made):7d} bytes"
        )
        print(lines[-1])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "quantized.txt").write_text("\n".join(lines) + "\n")


def train(model: Net, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(epochs):
        order = torch.randperm(len(images)).to(images.device)
        for batch in order.split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
