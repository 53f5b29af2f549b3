"""pytorch-metric-learning: mined triplets and a contrastive loss, with gradients."""

import torch
from pytorch_metric_learning import losses, miners


def use(device):
    vectors = torch.randn(24, 8).to(device).requires_grad_()
    kinds = (torch.arange(24) % 4).to(device)
    triplets = miners.MultiSimilarityMiner()(vectors, kinds)
    triplet = losses.TripletMarginLoss()(vectors, kinds, triplets)
    nearness = losses.NTXentLoss(0.1)(vectors, kinds)
    margin = losses.ArcFaceLoss(4, 8)
    with torch.no_grad():
        margin.W.copy_(torch.linspace(-1, 1, 32).reshape(8, 4))
    arc = margin.to(device)(vectors, kinds)
    (triplet + nearness + arc).backward()
    return {
        "triplets": list(triplets),
        "losses": [triplet, nearness, arc],
        "gradient": vectors.grad,
    }
