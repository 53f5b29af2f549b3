"""Training steps whose simulated time is measured, for one mirrored rank or for real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

D = os.environ.get("DEVICE", "graft")
LAYERS, WIDTH, BATCH, WARM = 4, 256, 64, 3
PARAMETERS = LAYERS * (WIDTH + 1) * WIDTH  # of float32


def seconds(function: Callable[[], Any]) -> float:
    """What function takes on the device's current stream, in simulated time."""
    start, end = (torch.Event(D, enable_timing=True) for _ in range(2))
    torch.accelerator.synchronize()
    start.record()
    function()
    end.record()
    torch.accelerator.synchronize()
    return start.elapsed_time(end) / 1e3


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).to(D)


def data_parallel(megabytes: float) -> nn.Module:
    """megabytes: of a bucket."""
    return DistributedDataParallel(network(), bucket_cap_mb=megabytes)


def sharded() -> nn.Module:
    model = network()
    mesh = dist.init_device_mesh(torch.device(D).type, (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def step_seconds(model: nn.Module) -> float:
    """Of a training step, after some that set up what the first ones do."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.ones(BATCH, WIDTH, device=D)

    def step() -> None:
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()

    for _ in range(WARM):
        step()
    return seconds(step)


def reduce_seconds(count: int) -> float:
    numbers = torch.ones(count, device=D)
    dist.all_reduce(numbers)  # the ranks are at one time after it
    return seconds(lambda: dist.all_reduce(numbers))


def in_group(size: int, function: Callable[[], Any]) -> Any:
    """Calls function as rank 0 of mirrored ranks."""
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=size)
    try:
        return function()
    finally:
        dist.destroy_process_group()


def times_of_two_ranks() -> list[float]:
    return [reduce_seconds(1 << 18), step_seconds(data_parallel(0.2)), step_seconds(sharded())]


def real_rank(rank: int) -> list[float]:
    """One of two processes, under run_ranks."""
    dist.init_process_group()
    return times_of_two_ranks()
