"""A tensor that goes to another process: how many bytes of it move."""

from __future__ import annotations

from typing import Any

import torch
import torch.multiprocessing as mp

ELEMENTS = 16 << 20  # 64 MB


def copied(device: str) -> int:
    return int(torch.get_device_module(device).statistics(device)["copied_bytes"])


def receive(device: str, inbox: Any, outbox: Any) -> None:
    """Answers each tensor with the bytes that were copied in this process so far."""
    while (tensor := inbox.get()) is not None:
        tensor.add_(1)  # it is here, to work with
        torch.accelerator.synchronize()
        outbox.put(copied(device))
        del tensor


def bytes_moved(device: str) -> int:
    """What both processes copied while one large tensor went from this one to another."""
    context = mp.get_context("spawn")
    inbox, outbox = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=receive, args=(device, inbox, outbox))
    process.start()
    inbox.put(torch.ones(1, device=device))
    there = outbox.get()
    large = torch.ones(ELEMENTS, device=device)
    here = copied(device)
    inbox.put(large)
    moved = int(outbox.get()) - there
    inbox.put(None)
    process.join()
    return moved + copied(device) - here
