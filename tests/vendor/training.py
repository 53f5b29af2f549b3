"""Trains a ResNet-50 and a GPT-2 on the CPU and on a vendor's chip; fails where they differ.

MODE: eager, compiled, optimize or captured. Prints the operators that the CPU computed."""

import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

TESTS = Path(__file__).resolve().parents[1]
sys.path += [
    str(TESTS / "python/compiler"),
    str(TESTS / "python/support"),
    str(TESTS.parent / "examples"),
]

from networks import NETWORKS  # noqa: E402

D = os.environ["DEVICE"]
MODE = os.environ["MODE"]
NAME = os.environ["NETWORK"]
graft = torch.get_device_module(D)


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def made(device: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    factory, draw = NETWORKS[NAME]
    model, (x,) = without_dropout(factory()), draw()
    if x.dim() == 4:
        x = x[:, :, :32, :32].contiguous()
    return model.to(device), x.to(device)


def losses_of(model: nn.Module, step, x: torch.Tensor) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    labels = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        result = step(x)
        scores = result if result.dim() == 2 else result.mean(1)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def inference(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        if MODE == "optimize":
            import torch_graft

            return torch_graft.optimize(model, x)(x)
        if MODE != "captured" or x.device.type == "cpu":
            return (torch.compile(model) if MODE == "compiled" else model)(x)
        model(x)
        graph = graft.Graph()
        with graft.graph(graph):
            result = model(x)
        result.zero_()
        graph.replay()
        return result


def run(device: str):
    model, x = made(device)
    found = inference(model, x).cpu()
    model, x = made(device)
    model.train()
    compiles = MODE == "compiled" and device != "cpu"
    losses = losses_of(model, torch.compile(model) if compiles else model, x)
    return found, losses, {k: v.cpu() for k, v in model.state_dict().items()}


expected = run("cpu")
graft.fallback.reset()
found = run(D)
print("cpu ran", graft.fallback.counts())
for one, other in zip(found, expected, strict=True):
    torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3)
print("equal")
