"""pytorch-optimizer: two steps of each of eight optimizers."""

import torch
from pytorch_optimizer import load_optimizer

NAMES = ("adabelief", "adan", "lamb", "lion", "madgrad", "radam", "ranger21", "shampoo")


def use(device):
    found = {}
    for name in NAMES:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
        ).to(device)
        more = {"num_iterations": 10} if name == "ranger21" else {}
        # Rows that differ: centred gradients of equal ones are zero but for what rounding leaves.
        x = torch.randn(4, 6).to(device)
        steps = load_optimizer(name)(model.parameters(), lr=1e-2, **more)
        for _ in range(2):
            steps.zero_grad()
            model(x).square().mean().backward()
            steps.step()
        found[name] = dict(model.state_dict())
    return found
