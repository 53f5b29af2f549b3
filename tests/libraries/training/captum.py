"""captum: integrated gradients, occlusion and GradCAM of a small network."""

import torch
from captum.attr import IntegratedGradients, LayerGradCam, Occlusion


def use(device):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(32, 4),
    ).to(device)  # fmt: skip
    images = torch.randn(2, 3, 12, 12).to(device)
    whole = IntegratedGradients(model).attribute(images, target=1, n_steps=8)
    hidden = Occlusion(model).attribute(
        images, target=1, sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4)
    )
    return {
        "whole": whole,
        "hidden": hidden,
        "map": LayerGradCam(model, model[0]).attribute(images, target=1),
    }
