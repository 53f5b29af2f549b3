"""Small models learn, and their first steps follow the CPU's."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

pytestmark = [pytest.mark.any_driver, pytest.mark.gpu_class, pytest.mark.any_runtime]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        tokens = (x[:, :6].abs() * 5).long().clamp(max=10)
        return self.head(self.layer(self.embed(tokens)).mean(1))


MODELS = {
    "mlp": lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)),
    "cnn": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 4)),
    "attention": Attention,
}  # fmt: skip
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-4),
    "adam": lambda p: torch.optim.Adam(p, 5e-3),
    "adamw": lambda p: torch.optim.AdamW(p, 5e-3, foreach=False),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 2e-3),
}


def train(device, make, optimizer, steps):
    """Losses of some steps on one batch of clusters, full batch, no dropout."""
    torch.manual_seed(0)
    model = make()
    centres = torch.randn(4, 16)
    labels = torch.arange(64) % 4
    x = (centres[labels] + 0.3 * torch.randn(64, 16)).to(device)
    model.to(device)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    labels, losses = labels.to(device), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_learns_like_the_cpu(device, name, optimizer):
    ours = train(device, MODELS[name], optimizer, 60)
    theirs = train("cpu", MODELS[name], optimizer, 5)
    assert_close(ours[:5], theirs, rtol=2e-3, atol=2e-4)
    assert ours[-1] < ours[0] / 2


def test_dropout_and_schedule(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
    x = torch.randn(128, 8, device=device)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(80):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < sum(losses[:5]) / 3


def test_recurrent(device):
    sides = []
    for where in ("cpu", device):
        torch.manual_seed(0)
        model = nn.LSTM(5, 7, 2, batch_first=True)
        x = torch.randn(3, 4, 5)
        out, _ = model.to(where)(x.to(where))
        out.square().sum().backward()
        sides.append([out.detach().cpu(), *[p.grad.cpu() for p in model.parameters()]])
    assert_close(sides[1], sides[0])
