"""lion-pytorch: three steps of Lion."""

import torch
from lion_pytorch import Lion


def use(device):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)).to(
        device
    )
    steps, x = Lion(model.parameters(), lr=1e-3, weight_decay=0.1), torch.randn(8, 6).to(device)
    for _ in range(3):
        steps.zero_grad()
        model(x).square().mean().backward()
        steps.step()
    return dict(model.state_dict())
