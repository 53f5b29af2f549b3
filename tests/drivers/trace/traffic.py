"""What a program does that a check of single slots does not: it trains, and uses streams, events, pinned memory and parts of tensors.

An error of the device ends one kind of work only, and numbers are not checked: a faulty driver may
give wrong ones.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import torch
from torch import nn

D = os.environ["DEVICE"]


def busy(size: int = 512) -> torch.Tensor:
    """Queues work that takes some milliseconds."""
    x = torch.ones(size, size, device=D)
    for _ in range(4):
        x = x @ x * 1e-3
    return x


def train() -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).to(D)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    inputs, classes = torch.randn(512, 256), torch.randint(10, (512,))
    for _ in range(3):
        x, y = inputs.to(D), classes.to(D)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.item()
        optimizer.zero_grad()
        loss.backward()
        torch.accelerator.synchronize()
        optimizer.step()


def use_events() -> None:
    start, end = (torch.Event(D, enable_timing=True) for _ in range(2))
    for _ in range(3):
        start.record()
        busy(256).sum().item()
        time.sleep(0.01)  # the next batch is read
        busy()
        end.record()
        end.query()
        end.synchronize()
        start.elapsed_time(end)


def use_streams() -> None:
    side = torch.Stream(D)
    for _ in range(3):
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            result = busy()
        side.query()
        torch.accelerator.current_stream().wait_stream(side)
        result.sum().item()
        side.synchronize()


def use_pinned() -> None:
    blocks = [torch.ones(size).pin_memory() for size in (1000, 3 << 20, 9 << 20)]
    there = [block.to(D, non_blocking=True) for block in blocks]
    for tensor, block in zip(there, blocks, strict=True):
        block.copy_(tensor, non_blocking=True)
    torch.accelerator.synchronize()


def use_parts() -> None:
    whole = torch.arange(1000, dtype=torch.uint8).to(D)
    whole[1:].cpu()
    whole[3:7].copy_(torch.zeros(4, dtype=torch.uint8))
    whole[5:900] = 3
    whole.fill_(2)
    torch.full((5, 7), 1.5, device=D).zero_()


def wait_elsewhere() -> None:
    busy(768)
    thread = threading.Thread(target=torch.accelerator.synchronize)
    thread.start()
    thread.join()


if __name__ == "__main__":
    for work in (train, use_events, use_streams, use_pinned, use_parts, wait_elsewhere):
        try:
            work()
        except RuntimeError as error:
            print(f"{work.__name__}: {error}", file=sys.stderr)
