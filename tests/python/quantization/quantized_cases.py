"""What the tests of quantization share: numbers, and the promise that nothing falls back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import torch

from sandbox import NAME

# PyTorch warns of its plans to drop quantized dtypes, and to move these flows to torchao.
QUIET = pytest.mark.filterwarnings("ignore")


@contextlib.contextmanager
def native(device: str = NAME) -> Iterator[None]:
    """No operator inside may fall back to the CPU. Promises nothing where device is the CPU."""
    forbids = (
        torch.get_device_module(NAME).fallback.forbid
        if device == NAME != "cpu"
        else contextlib.nullcontext
    )
    with forbids():
        yield


def numbers(
    *sizes: int, seed: int = 0, spread: float = 4.0, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Numbers of a normal distribution, the same ones at each call."""
    return (torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)) * spread).to(dtype)
