"""Trains the digits network with its parameters sharded over the ranks (FSDP2), and saves it.

torchrun --nproc-per-node 2 examples/fsdp2.py
"""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import ranks
from digits import BATCH, load

GOAL = 0.90


def sharded(device: torch.device) -> nn.Module:
    """A multilayer perceptron: every layer's parameters are gathered for its own use alone."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 10),
    ).to(device)  # fmt: skip
    mesh = dist.init_device_mesh(device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def train(model: nn.Module, device: torch.device, epochs: int) -> float:
    """Each rank takes its share of every batch. Returns the accuracy on the test images."""
    train_x, train_y, test_x, test_y = (part.to(device) for part in load())
    rank, size = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for rows in torch.randperm(len(train_x), generator=order).split(BATCH):
            if len(rows) < BATCH:
                continue
            mine = rows[rank::size].to(device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(train_x[mine]).float(), train_y[mine]).backward()
            optimizer.step()
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean()
    dist.all_reduce(right, dist.ReduceOp.MIN)
    return right.item()


def main() -> None:
    options, device = ranks.begin(__doc__, epochs=8)
    model = sharded(device)
    accuracy = train(model, device, options.epochs)
    dcp.save(get_model_state_dict(model), checkpoint_id=options.out / "fsdp2")
    if dist.get_rank() == 0:
        found = {"ranks": dist.get_world_size(), "accuracy": accuracy}
        (options.out / "fsdp2.json").write_text(json.dumps(found))
        print(f"{found['ranks']} ranks: accuracy {accuracy:.3f}, saved to {options.out / 'fsdp2'}")
    dist.destroy_process_group()
    if accuracy < GOAL:
        raise SystemExit(f"accuracy {accuracy:.3f}, goal {GOAL}")


if __name__ == "__main__":
    main()
