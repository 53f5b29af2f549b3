"""geomloss: the Sinkhorn divergence and an energy distance, with gradients."""

import torch
from geomloss import SamplesLoss


def use(device):
    one = torch.randn(20, 2).to(device).requires_grad_()
    other = torch.randn(25, 2).to(device)
    sinkhorn = SamplesLoss("sinkhorn", p=2, blur=0.1, backend="tensorized")(one, other)
    energy = SamplesLoss("energy", backend="tensorized")(one, other)
    (sinkhorn + energy).backward()
    return {"sinkhorn": sinkhorn, "energy": energy, "gradient": one.grad}
