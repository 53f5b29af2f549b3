"""Decoding with weights of 8 and 4 bits: one row times a [4096, 4096] weight, beside torch's CPU and our bfloat16."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F

from cases import Case, Work

SIDE, GROUP = 4096, 128
ROW = "1x4096 times 4096x4096"
OURS = "graft"


def row(device: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(1, SIDE, generator=torch.Generator().manual_seed(1)).to(device, dtype)


def bytes_of_weight(device: str, dtype: torch.dtype) -> Work:
    source = torch.Generator().manual_seed(2)
    weight = torch.randint(-128, 128, (SIDE, SIDE), generator=source, dtype=torch.int8).to(device)
    scales = torch.full((SIDE,), 0.01, device=device, dtype=dtype)
    x = row(device, dtype)
    return lambda: torch._weight_int8pack_mm(x, weight, scales)


def nibbles_of_weight(device: str, dtype: torch.dtype) -> Work:
    """torch's CPU has operators of other names, whose packed weight is its own."""
    source = torch.Generator().manual_seed(2)
    integers = torch.randint(0, 16, (SIDE, SIDE), generator=source, dtype=torch.int32)
    pairs = torch.full((SIDE // GROUP, SIDE, 2), 0.01, device=device, dtype=dtype)
    x = row(device, dtype)
    if device == "cpu":
        packed = torch._convert_weight_to_int4pack_for_cpu(integers, 8)
        return lambda: torch._weight_int4pack_mm_for_cpu(x, packed, GROUP, pairs)
    bytes_ = (integers[:, ::2] << 4 | integers[:, 1::2]).to(torch.uint8).to(device)
    weight = torch._convert_weight_to_int4pack(bytes_, 8)
    return lambda: torch._weight_int4pack_mm(x, weight, GROUP, pairs)


def plain(device: str, dtype: torch.dtype) -> Work:
    weight = torch.randn(SIDE, SIDE, generator=torch.Generator().manual_seed(2)).to(device, dtype)
    x = row(device, dtype)
    return lambda: F.linear(x, weight)


def beside_ours(make: Callable[[str, torch.dtype], Work]) -> Callable[[str], Work]:
    """The other side does our bfloat16 product; it waits for each, as the CPU does."""

    def make_either(device: str) -> Work:
        if device != "cpu":
            return make(device, torch.bfloat16)
        work, wait = plain(OURS, torch.bfloat16), torch.get_device_module(OURS).synchronize

        def call() -> None:
            work()
            wait()

        return call

    return make_either


def case(name: str, goal: float, make: Callable[[str], Work]) -> Case:
    return Case(f"weights: {ROW}, {name}", goal, make)


BF16 = torch.bfloat16
WEIGHTS: dict[str, Case] = {
    one.name: one
    for one in (
        case("int8 / torch's bfloat16", 0.9, lambda device: bytes_of_weight(device, BF16)),
        case("int4 / torch's bfloat16", 0.8, lambda device: nibbles_of_weight(device, BF16)),
        case("int8 / our bfloat16", 0.6, beside_ours(bytes_of_weight)),
        case("int4 / our bfloat16", 0.4, beside_ours(nibbles_of_weight)),
        case("bfloat16 / torch's bfloat16", 0.9, lambda device: plain(device, BF16)),
    )
}
