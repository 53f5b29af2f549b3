"""neuraloperator: a Fourier neural operator trains for a step."""

import torch
from neuralop.models import FNO


def use(device):
    model = FNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2).to(
        device
    )
    found = model(torch.randn(2, 1, 16, 16).to(device))
    found.square().mean().backward()
    return {
        "found": found,
        "gradients": [one.grad for one in model.parameters() if one.grad is not None],
    }
