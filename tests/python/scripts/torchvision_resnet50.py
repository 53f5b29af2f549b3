"""Trains torchvision's ResNet-50 for a few steps on made-up images."""

import torch
from torch import nn
from torchvision import models

torch.manual_seed(0)
device = torch.accelerator.current_accelerator()
model = models.resnet50(weights=None, num_classes=10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9, weight_decay=1e-4)
images = torch.randn(4, 3, 64, 64).to(device)
labels = torch.arange(4).to(device)

losses: list[torch.Tensor] = []
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())

model.eval()
with torch.inference_mode():
    logits = model(images)
