"""torchdiffeq: a neural ODE by dopri5, with the adjoint's gradients."""

import torch
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
        )

    def forward(self, _, y):
        return self.layers(y**3)


def use(device):
    field, start = Field().to(device), torch.tensor([[1.0, 0.5]]).to(device)
    times = torch.linspace(0, 1, 5).to(device)
    path = odeint_adjoint(field, start, times)
    path.square().sum().backward()
    fixed = odeint(field, start, times, method="rk4")
    return {"path": path, "fixed": fixed, "gradients": [one.grad for one in field.parameters()]}
