"""torchsde: an Itô equation by Euler's method, with the noise that the CPU draws."""

import torch
import torchsde


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(0.3))

    def f(self, _, y):
        return -self.rate * y

    def g(self, _, y):
        return 0.1 * torch.ones_like(y)


class Noise(torchsde.BaseBrownian):
    """Increments that are the same on each device."""

    def __init__(self, device):
        super().__init__()
        self.shape, self.dtype, self.device, self.levy_area_approximation = (
            (4, 3),
            torch.float32,
            device,
            "none",
        )

    def __call__(self, one, other, return_U=False, return_A=False):
        return (
            (torch.sin(torch.arange(12.0) * 7 + float(other)) * float(other - one) ** 0.5)
            .reshape(4, 3)
            .to(self.device)
        )


def use(device):
    equation, start = Equation().to(device), torch.ones(4, 3).to(device)
    times = torch.linspace(0, 1, 4).to(device)
    path = torchsde.sdeint(equation, start, times, bm=Noise(device), method="euler", dt=0.1)
    path.sum().backward()
    return {"path": path, "gradient": equation.rate.grad}
