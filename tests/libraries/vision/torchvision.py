"""torchvision: a ResNet-18 trains for a step on transformed images."""

import torch
from torchvision.models import resnet18
from torchvision.transforms import v2 as transforms


def use(device):
    images = torch.randint(256, (2, 3, 72, 72), dtype=torch.uint8).to(device)
    change = transforms.Compose([
        transforms.ToDtype(torch.float32, scale=True), transforms.Resize(64),
        transforms.Normalize([0.5] * 3, [0.2] * 3),
    ])  # fmt: skip
    model = resnet18(num_classes=5).to(device)
    given = change(images)
    loss = torch.nn.functional.cross_entropy(model(given), torch.tensor([1, 3]).to(device))
    loss.backward()
    return {"given": given, "loss": loss, "gradients": [one.grad for one in model.parameters()]}
