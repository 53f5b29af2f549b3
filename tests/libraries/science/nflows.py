"""nflows: the likelihood under a masked autoregressive flow, with gradients."""

import torch
from nflows import distributions, flows, transforms


def use(device):
    chain = transforms.CompositeTransform([
        transforms.ReversePermutation(3), transforms.MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
            features=3, hidden_features=8, num_bins=5, tails="linear", tail_bound=3.0),
    ])  # fmt: skip
    flow = flows.Flow(chain, distributions.StandardNormal([3])).to(device)
    chance = flow.log_prob(torch.randn(10, 3).to(device))
    chance.mean().backward()
    return {
        "chance": chance,
        "gradients": [one.grad for one in flow.parameters() if one.grad is not None],
    }
