"""Trains the digits network on several ranks with DistributedDataParallel.

torchrun --nproc-per-node 2 examples/ddp.py
"""

from __future__ import annotations

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import ranks
from digits import BATCH, Net, correct, load, logits_of

GOAL = 0.93


def train(device: torch.device, epochs: int) -> tuple[float, float]:
    """Returns the accuracy on the test images, and by how much the ranks' weights differ."""
    train_x, train_y, test_x, test_y = load()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(Net()).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = TensorDataset(train_x, train_y)
    sampler: DistributedSampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, BATCH // dist.get_world_size(), sampler=sampler, pin_memory=True)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            images, labels = (part.to(device, non_blocking=True) for part in (images, labels))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    right = correct(logits_of(model.module, test_x.to(device)), test_y.to(device))
    return right / len(test_y), spread(model)


def spread(model: nn.Module) -> float:
    """The largest difference between the weights of two ranks."""
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    most, least = flat.clone(), flat.clone()
    dist.all_reduce(most, dist.ReduceOp.MAX)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return (most - least).max().item()


def main() -> None:
    options, device = ranks.begin(__doc__, epochs=6)
    accuracy, apart = train(device, options.epochs)
    if dist.get_rank() == 0:
        options.out.mkdir(parents=True, exist_ok=True)
        found = {"ranks": dist.get_world_size(), "accuracy": accuracy, "apart": apart}
        (options.out / "ddp.json").write_text(json.dumps(found))
        print(f"{found['ranks']} ranks: accuracy {accuracy:.3f}, weights differ by {apart:g}")
    dist.destroy_process_group()
    if accuracy < GOAL or apart > 0:
        raise SystemExit(f"accuracy {accuracy:.3f} (goal {GOAL}), weights differ by {apart:g}")


if __name__ == "__main__":
    main()
