"""Trains with accelerate as a user writes it; each rank reports its gradients."""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import FullyShardedDataParallelPlugin, GradScalerKwargs
from torch.utils.data import DataLoader

import joined_batch

mixed, sharded = sys.argv[2] if len(sys.argv) > 2 else "no", "fsdp2" in sys.argv
accelerator = Accelerator(
    mixed_precision=mixed, kwargs_handlers=[GradScalerKwargs(init_scale=64.0)],
    fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=2) if sharded else None,
)  # fmt: skip
model = joined_batch.network()
optimizer = torch.optim.SGD(model.parameters(), lr=joined_batch.RATE)
loader = DataLoader(joined_batch.Rows(), batch_size=int(sys.argv[1]))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

gradients = []
for x, y in loader:
    logits = model(x)
    accelerator.backward(torch.nn.functional.cross_entropy(logits, y))
    norm = accelerator.clip_grad_norm_(model.parameters(), 1e6)  # unscales
    gradients.append(joined_batch.numbers(p.grad for p in model.parameters()))
    optimizer.step()
    optimizer.zero_grad()

# Before the last forward, after which the root of FSDP2 keeps whole parameters of the narrower dtype.
held, parameters = joined_batch.held(model), joined_batch.numbers(model.parameters())
kept = accelerator.get_state_dict(model).values()  # whole, of shards on the first rank alone
with accelerator.autocast():
    dtype = str(model(x).dtype if sharded else accelerator.unwrap_model(model)[0](x).dtype)
joined_batch.report(
    accelerator.device, ranks=accelerator.num_processes, kind=str(accelerator.distributed_type),
    gradients=gradients, parameters=parameters, dtype=dtype,
    held=held, norm=joined_batch.numbers([norm]), kept=joined_batch.numbers(kept) if kept else [],
    scaler=accelerator.scaler is not None and accelerator.scaler.is_enabled(),
)  # fmt: skip
accelerator.end_training()
