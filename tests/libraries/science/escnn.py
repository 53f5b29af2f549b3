"""escnn: a convolution that knows turns by 90 degrees, with gradients."""

import torch
from escnn import gspaces, nn


def use(device):
    space = gspaces.rot2dOnR2(N=4)
    seen, felt = (
        nn.FieldType(space, 3 * [space.trivial_repr]),
        nn.FieldType(space, 4 * [space.regular_repr]),
    )
    layers = nn.SequentialModule(nn.R2Conv(seen, felt, kernel_size=3, padding=1), nn.ReLU(felt)).to(
        device
    )
    found = layers(nn.GeometricTensor(torch.randn(2, 3, 9, 9).to(device), seen)).tensor
    found.square().mean().backward()
    return {"found": found, "gradients": [one.grad for one in layers.parameters()]}
