"""timm: a ViT and a ConvNeXt train for a step."""

import timm
import torch


def use(device):
    found = {}
    models = {
        "vit": timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2, num_classes=5),
        "convnext": timm.create_model("convnext_atto", num_classes=5),
    }
    images, kinds = torch.randn(2, 3, 64, 64).to(device), torch.tensor([1, 3]).to(device)
    for name, model in models.items():
        model.to(device)
        loss = torch.nn.functional.cross_entropy(model(images), kinds)
        loss.backward()
        found[name] = [loss, *(one.grad for one in model.parameters())]
    return found
