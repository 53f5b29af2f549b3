"""Which memory is given out again while commands that use it are not done; prints it as JSON."""

import json
import os

import torch

D = os.environ["DEVICE"]


def busy(n):
    x = torch.randn(900, 900, device=D)
    for _ in range(n):
        x = x @ x / 30


found = {}
busy(1)
torch.accelerator.synchronize()

source = torch.ones(1).pin_memory()
address = source.data_ptr()
target = torch.zeros(1, device=D)
busy(12)
target.copy_(source, non_blocking=True)
del source
other = torch.full((1,), 7.0).pin_memory()
found["pinned"] = [other.data_ptr() != address, target.item()]

made = torch.full((1,), 5.0, device=D)
landing = torch.zeros(1).pin_memory()
address = landing.data_ptr()
busy(12)
landing.copy_(made, non_blocking=True)
del landing
other = torch.full((1,), 7.0).pin_memory()
early = other.data_ptr()
torch.accelerator.synchronize()
found["pinned that a copy writes"] = [early != address, other.item()]

landing = torch.zeros(1000).pin_memory()
busy(12)
landing.copy_(torch.full((1000,), 2.5, device=D), non_blocking=True)
back = landing.to(D, torch.float64, non_blocking=True)
other = torch.zeros(1000, dtype=torch.int32, device=D)[::2]
other.copy_(landing[:500], non_blocking=True)
found["cast behind a copy"] = [back.unique().tolist(), other.unique().tolist()]

with torch.accelerator.device_index(1):
    there = torch.zeros(1, device=f"{D}:1")
    source = torch.full((1,), 3.0).pin_memory()
    address = source.data_ptr()
    x = torch.randn(900, 900, device=f"{D}:1")
    for _ in range(12):
        x = x @ x / 30
    there.copy_(source, non_blocking=True)
del source
again = torch.full((1,), 9.0).pin_memory()
found["pinned on the second device"] = [again.data_ptr() != address, there.item()]

owner, user = torch.Stream(D), torch.Stream(D)
torch.accelerator.synchronize()
with owner:
    base = torch.ones(1000, device=D)
address, view = base.data_ptr(), base[5:]
with user:
    busy(12)
view.record_stream(user)
del base, view
owner.synchronize()
with owner:
    early = torch.ones(1000, device=D).data_ptr()
user.synchronize()
with owner:
    late = [torch.ones(1000, device=D) for _ in range(2)]
found["recorded view"] = [early != address, address in [x.data_ptr() for x in late]]
print(json.dumps(found))
