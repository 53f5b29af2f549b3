"""vit-pytorch: a ViT and a MaxViT train for a step."""

import torch
from vit_pytorch import ViT
from vit_pytorch.max_vit import MaxViT


def use(device):
    found = {}
    models = {
        "vit": ViT(
            image_size=32, patch_size=8, num_classes=4, dim=32, depth=2, heads=2, mlp_dim=64
        ),
        "maxvit": MaxViT(
            num_classes=4, dim=16, depth=(1, 1), window_size=4, dim_head=8, dropout=0.0
        ),
    }
    images = torch.randn(2, 3, 32, 32).to(device)
    for name, model in models.items():
        loss = model.to(device)(images).square().mean()
        loss.backward()
        found[name] = [loss, *(one.grad for one in model.parameters() if one.grad is not None)]
    return found
