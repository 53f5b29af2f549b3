"""Trains small models on the CPU and on the device; fails where they differ."""

import os

import torch
from torch import nn
from torch.nn import functional as F

D = os.environ["DEVICE"]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells, self.head = kind(6, 12, num_layers=2, batch_first=True), nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layers(self.words(x)).mean(1))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


MODELS = {
    "cnn": (convolutional, lambda: torch.randn(4, 3, 12, 12)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(4, 5, 6)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(4, 5, 6)),
    "transformer": (Attending, lambda: torch.randint(20, (4, 7))),
}


def train(name, device, compiled):
    torch.manual_seed(0)
    make, draw = MODELS[name]
    model, x, y = make(), draw(), torch.randint(3, (4,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    step = torch.compile(model) if compiled else model
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(step(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {k: v.cpu() for k, v in model.state_dict().items()}


fallback = torch.get_device_module(D).fallback
for name in MODELS:
    expected, state = train(name, "cpu", False)
    fallback.reset()
    losses, found = train(name, D, os.environ["COMPILED"] == "1")
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found, state, rtol=1e-3, atol=1e-3)
    if os.environ["ALL_FALL_BACK"] == "1":
        assert fallback.total() > 20, (name, fallback.counts())
print("trained")
