"""Trains a small vision transformer from timm for a few steps, with its optimizer and schedule."""

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

torch.manual_seed(0)
device = torch.accelerator.current_accelerator()
model = timm.create_model(
    "vit_tiny_patch16_224",
    img_size=64,
    depth=3,
    num_classes=5,
    pretrained=False,
    drop_path_rate=0.1,
).to(device)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=8, warmup_t=1, warmup_lr_init=1e-4)
criterion = LabelSmoothingCrossEntropy(0.1)
images = torch.randn(10, 3, 64, 64).to(device)
labels = (torch.arange(10) % 5).to(device)

losses: list[torch.Tensor] = []
for epoch in range(6):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step(epoch + 1)
    losses.append(loss.detach())

model.eval()
with torch.inference_mode():
    logits = model(images)
