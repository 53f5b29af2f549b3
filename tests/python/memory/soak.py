"""Trains some thousand small steps and checks that memory and file descriptors stay flat."""

from __future__ import annotations

import argparse
import os
import sys

import psutil
import torch
from torch import nn

# Before that the resident size still grows by some 2 MB; after it, by 50 KB in 9,000 steps.
WARM_STEPS = 1000


def measure(device: str) -> dict[str, int]:
    torch.accelerator.synchronize()
    return {
        "allocated": torch.accelerator.memory_allocated(),
        "reserved": torch.accelerator.memory_reserved(),
        "resident": psutil.Process().memory_info().rss,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


def soak(device: str, steps: int) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the figures after the first steps and at the end."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.2), nn.Linear(72, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    side = torch.Stream(device)
    warm: dict[str, int] = {}
    for step in range(steps):
        batch = 8 + step % 5
        x = torch.randn(batch, 1, 8, 8).pin_memory().to(device, non_blocking=True)
        y = (torch.arange(batch) % 10).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            loss.detach().mul(2)
            loss.record_stream(side)
        if step % 100 == 0:
            loss.item()
        if step == WARM_STEPS:
            warm = measure(device)
    return warm, measure(device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=os.environ.get("GRAFT_TEST_DEVICE", "graft"))
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    if options.steps <= WARM_STEPS:
        parser.error(f"--steps {options.steps}: expected more than the first {WARM_STEPS}")
    warm, end = soak(options.device, options.steps)
    # The resident size has the interpreter's noise; 1 MiB is a leak of 117 bytes a step.
    room = {"allocated": 0, "reserved": 0, "resident": 1 << 20, "descriptors": 0, "threads": 0}
    grown = {k: end[k] - warm[k] for k in warm if end[k] - warm[k] > room[k]}
    print(f"after {WARM_STEPS} steps {warm}\nafter {options.steps} steps {end}")
    print(f"grew: {grown}" if grown else "flat")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
