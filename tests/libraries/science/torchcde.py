"""torchcde: a controlled equation along a cubic spline, with gradients."""

import torch
import torchcde


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 12)

    def forward(self, _, z):
        return self.layer(z).tanh().view(-1, 4, 3)


def use(device):
    path = torchcde.CubicSpline(
        torchcde.hermite_cubic_coefficients_with_backward_differences(
            torch.randn(2, 6, 3).to(device)
        )
    )
    field = Field().to(device)
    found = torchcde.cdeint(
        X=path, func=field, z0=torch.ones(2, 4).to(device), t=path.interval, method="rk4"
    )
    found.square().sum().backward()
    return {"found": found, "gradients": [one.grad for one in field.parameters()]}
