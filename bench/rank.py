"""What one rank of the distributed rows does: builds a case, and takes samples beside the others."""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from record import synchronize
from timing import seconds_per_call

SAMPLE_SECONDS = 0.05
WIDTH, ROWS = 1024, 4
_calls: dict[tuple[str, str], tuple[Callable[[], Any], int]] = {}


def summed(elements: int) -> Callable[[str], Callable[[], Any]]:
    def make(where: str) -> Callable[[], Any]:
        tensor = torch.zeros(elements, device=where)
        return lambda: dist.all_reduce(tensor)

    return make


def stepping(parallel: bool) -> Callable[[str], Callable[[], Any]]:
    """A step of a perceptron with 16 MB of gradients, in parallel or on every rank for itself."""

    def make(where: str) -> Callable[[], Any]:
        torch.manual_seed(0)
        layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        model: nn.Module = nn.Sequential(*layers).to(where)
        if parallel:
            model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        rows = torch.randn(ROWS, WIDTH).to(where)

        def step() -> None:
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()

        return step

    return make


CASES = {
    "all_reduce of 64 MB": summed(16 << 20),
    "all_reduce of 4 kB": summed(1 << 10),
    "DDP step": stepping(True),
    "step alone": stepping(False),
}


def meet(device: str, port: int, rank: int, size: int) -> None:
    """Makes the group, of tensors of the device and, through Gloo, of the CPU."""
    torch.set_num_threads(1)
    dist.init_process_group(
        init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size,
        timeout=timedelta(seconds=120),
    )  # fmt: skip


def part(device: str) -> None:
    _calls.clear()
    dist.destroy_process_group()


def timed(where: str, call: Callable[[], Any], count: int) -> float:
    """Seconds per call, the last synchronisation included; the ranks begin together."""
    synchronize(where)
    dist.barrier()
    return seconds_per_call(where, call, count)


def prepare(device: str, name: str, where: str) -> None:
    """Builds a case on a device, warms it up, and agrees how many calls make a sample."""
    call = CASES[name](where)
    timed(where, call, 3)
    count = torch.tensor([max(1, min(int(SAMPLE_SECONDS / timed(where, call, 3)), 5000))])
    dist.broadcast(count, 0)
    _calls[name, where] = call, int(count)


def sample(device: str, name: str, where: str) -> float:
    return timed(where, *_calls[name, where])


def drop(device: str, name: str, where: str) -> None:
    _calls.pop((name, where), None)
    gc.collect()
