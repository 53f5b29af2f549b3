"""opacus: gradients of each sample, clipped, without noise."""

import torch
from opacus import GradSampleModule


def use(device):
    plain = torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 3)
    )
    model = GradSampleModule(plain.to(device))
    loss = torch.nn.functional.cross_entropy(
        model(torch.randn(5, 2, 8).to(device)), (torch.arange(5) % 3).to(device)
    )
    loss.backward()
    return {"loss": loss, "samples": [one.grad_sample for one in model.parameters()]}
