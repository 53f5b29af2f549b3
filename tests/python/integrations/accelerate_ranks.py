"""Trains with accelerate as a user writes it; each rank reports its gradients."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import GradScalerKwargs
from torch.utils.data import DataLoader

import joined_batch

mixed = sys.argv[2] if len(sys.argv) > 2 else "no"
accelerator = Accelerator(
    mixed_precision=mixed, kwargs_handlers=[GradScalerKwargs(init_scale=64.0)]
)
model = joined_batch.network()
optimizer = torch.optim.SGD(model.parameters(), lr=joined_batch.RATE)
loader = DataLoader(joined_batch.Rows(), batch_size=int(sys.argv[1]))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

gradients = []
for x, y in loader:
    logits = model(x)
    accelerator.backward(torch.nn.functional.cross_entropy(logits, y))
    if accelerator.scaler is not None:
        accelerator.unscale_gradients()
    gradients.append(joined_batch.numbers(p.grad for p in model.parameters()))
    optimizer.step()
    optimizer.zero_grad()

probe = accelerator.unwrap_model(model)[0]
with accelerator.autocast():
    dtype = str(probe(x).dtype)
joined_batch.report(
    accelerator.device, ranks=accelerator.num_processes, kind=str(accelerator.distributed_type),
    gradients=gradients, parameters=joined_batch.numbers(model.parameters()), dtype=dtype,
    scaler=accelerator.scaler is not None and accelerator.scaler.is_enabled(),
)  # fmt: skip
accelerator.end_training()
