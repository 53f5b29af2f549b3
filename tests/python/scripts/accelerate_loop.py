"""Trains a small network with accelerate's prepare(): clipping, accumulation, schedule, checkpoint."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(5)
inputs = torch.randn(128, 16)
labels = (inputs[:, :8].sum(1) > inputs[:, 8:].sum(1)).long()
accelerator = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(
    nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=16, shuffle=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=40)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

losses: list[torch.Tensor] = []
for _ in range(5):
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(loss.detach())

with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state(folder)
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
restored = torch.equal(before, after)
gathered = accelerator.gather_for_metrics(model(x).argmax(1))
