"""What runs in the process that holds the models of the deployed models' table: deploys them and calls them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

import torch_graft
from compile_cases import bert, gpt2, resnet

MODELS: dict[str, Callable[[], tuple[nn.Module, list[Any]]]] = {
    "ResNet-50 b16": lambda: resnet(16),
    "BERT-base b4 s128": bert,
    "GPT-2 b4 s128": lambda: gpt2(4),
    "ResNet-50 b1": lambda: resnet(1),
}
_made: dict[str, Any] = {}


def prepare(device: str, name: str, path: str, threads: int) -> list[str]:
    """Optimizes the model and deploys it. Returns the files of its inputs."""
    torch.set_num_threads(threads)
    _made.clear()
    gc.collect()
    torch.manual_seed(0)
    plain, given = MODELS[name]()
    model = torch_graft.optimize(plain.eval().to(device))

    def call() -> torch.Tensor:
        with torch.no_grad():
            found = model(*(one.to(device) for one in given))
        return found.cpu()

    call()
    with torch.no_grad():
        torch_graft.deploy(model, [one.to(device) for one in given], path)
    files = [f"{path}.{place}.npy" for place in range(len(given))]
    for file, one in zip(files, given, strict=True):
        np.save(file, one.numpy())
    _made["call"] = call
    return files


def sample(device: str, seconds: float) -> float:
    """The median of a call's seconds, its inputs and results copied, over so many seconds."""
    call, taken = _made["call"], [0.0]
    call()
    while sum(taken) < seconds:
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return median(taken[1:])


def read(device: str, path: str) -> float:
    """Seconds in which the file is read into memory."""
    there = bytearray(Path(path).stat().st_size)
    begin = time.perf_counter()
    with Path(path).open("rb", buffering=0) as file:
        assert file.readinto(there) == len(there)
    return time.perf_counter() - begin
