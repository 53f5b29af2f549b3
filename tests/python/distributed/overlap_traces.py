"""FSDP2 under the profiler: which collectives run while the device computes."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.profiler import ProfilerActivity, profile

from collective_checks import TIMEOUT

D = os.environ.get("DEVICE", "graft")
LAYERS, WIDTH, ROWS = 8, 768, 4096


def sharded() -> nn.Module:
    mesh = dist.init_device_mesh(torch.device(D).type, (dist.get_world_size(),))
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).to(D)
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def is_gather(event: dict[str, Any]) -> bool:
    named = event["name"] + str(event["args"].get("op", ""))
    return "graft:" in named and "gather" in named


def gathers_in(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The collectives, not the copies beside them; these where the driver has no collectives."""
    for category in ("kernel", "gpu_memcpy"):
        found = [e for e in events if e.get("cat") == category and "dur" in e and is_gather(e)]
        if found:
            return found
    return []


def overlaps(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        one["tid"] != other["tid"]
        and one["ts"] < other["ts"] + other["dur"]
        and other["ts"] < one["ts"] + one["dur"]
    )


def traced_pass(model: nn.Module, rows: torch.Tensor, path: Path) -> tuple[int, int]:
    """How many all-gathers a forward pass has, and how many of them run beside a product."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as trace:
        model(rows)
        torch.accelerator.synchronize()
    trace.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    work = [e for e in events if e.get("cat") == "kernel" and "dur" in e]
    products = [e for e in work if "mm" in e["name"] + str(e["args"].get("op", ""))]
    gathers = gathers_in(events)
    beside = [e for e in gathers if any(overlaps(e, product) for product in products)]
    return len(gathers), len(beside)


def gathers_beside_compute(rank: int, folder: str) -> list[tuple[int, int]]:
    """What each of a few passes showed: a busy machine may run a product before the next gather is asked for."""
    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    model, rows = sharded(), torch.randn(ROWS, WIDTH, device=D)
    for _ in range(2):
        model(rows).sum().backward()
    torch.accelerator.synchronize()
    dist.barrier()
    return [
        traced_pass(model, rows, Path(folder) / f"rank {rank}, pass {i}.json") for i in range(3)
    ]
