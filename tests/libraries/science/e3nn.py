"""e3nn: spherical harmonics and a tensor product, with gradients."""

import torch
from e3nn import o3


def use(device):
    kinds = o3.Irreps("4x0e + 2x1o")
    product = o3.FullyConnectedTensorProduct(
        kinds, o3.Irreps.spherical_harmonics(2), "4x0e + 2x1o + 1x2e"
    ).to(device)
    where = torch.randn(9, 3).to(device).requires_grad_()
    waves = o3.spherical_harmonics([0, 1, 2], where, normalize=True)
    found = product(torch.randn(9, kinds.dim).to(device), waves)
    found.square().sum().backward()
    return {"waves": waves, "found": found, "gradient": where.grad, "weights": product.weight.grad}
