"""What runs in the process of one side: builds a case, keeps it warm, takes samples."""

from __future__ import annotations

import gc
import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import cases
import kernel_cases
import loading
import offload_cases
import opencl_cases
from record import synchronize
from timing import seconds_per_call

SAMPLE_SECONDS = 0.03
_work: dict[str, Any] = {}


def prepare(device: str, name: str, threads: int, seconds: float = SAMPLE_SECONDS) -> None:
    """Builds a case, warms it up and fixes how many calls make a sample of some seconds."""
    torch.set_num_threads(threads)
    _work.clear()
    gc.collect()
    made = name.removeprefix("layer ")
    known = opencl_cases.OPENCL | cases.CASES | kernel_cases.KERNELS | loading.LOADING
    known |= offload_cases.OFFLOADING
    call = cases.layer(made, device) if made != name else known[name].make(device)
    _work.update(call=call, count=1)
    for _ in range(3):
        call()
    took = sample(device)
    while took * _work["count"] < seconds and _work["count"] < 1_000_000:
        _work["count"] = max(2 * _work["count"], min(int(seconds / took), 1_000_000))
        took = sample(device)


def sample(device: str) -> float:
    """Seconds per call, the last synchronisation included."""
    return seconds_per_call(device, _work["call"], _work["count"])


def enqueued(device: str) -> float:
    """Seconds per call of a few in a row, of which none waits: what a queue takes at once."""
    call, count = _work["call"], 200
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    took = (time.perf_counter() - start) / count
    synchronize(device)
    return took


def seconds_of(device: str, name: str) -> float:
    """Seconds of the first call of a case in this process, all that it has to prepare included."""
    start = time.perf_counter()
    cases.CASES[name].make(device)()
    synchronize(device)
    return time.perf_counter() - start


def profiled(device: str, activities: list[str]) -> float:
    """Seconds of one call while these activities are profiled; what comes after it does not count."""
    call = _work["call"]
    chosen = [getattr(ProfilerActivity, name) for name in activities]
    synchronize(device)
    with profile(activities=chosen) if chosen else nullcontext():
        start = time.perf_counter()
        call()
        synchronize(device)
        return time.perf_counter() - start


def resident(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+) kB", text)[1])  # type: ignore[index]


def peak_memory(device: str, name: str, threads: int) -> int:
    """Bytes a case takes at its peak: reserved on a device, resident growth on the CPU."""
    torch.set_num_threads(threads)
    torch.ones(1, device=device).add(1)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    call = cases.CASES[name].make(device)
    for _ in range(3):
        call()
    synchronize(device)
    if device == "cpu":
        return resident("VmHWM") - before
    return torch.accelerator.max_memory_reserved()
