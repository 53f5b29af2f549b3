# tests/python/tensors/test_row_copies.py: copies between the host and the device of tensors with gaps.
"""copy_strided: what goes as rows, in how many commands, and that the values are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from sandbox import NAME

Change = Callable[[torch.Tensor], torch.Tensor]

SHAPES: dict[str, Change] = {
    "half of each row": lambda x: x[:, :, ::, 8:40],
    "every second row": lambda x: x[:, :, ::2],
    "a corner": lambda x: x[1:, 1:3, 2:9, :33],
    "planes in another order": lambda x: x.permute(2, 0, 1, 3),
    "batch of channels last": lambda x: x.permute(0, 2, 1, 3)[1:],
    "a row for all": lambda x: x[:1, :1, :1].expand(3, 4, 10, 64),
}


def made(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(3 * 4 * 10 * 64).reshape(3, 4, 10, 64).to(dtype)


def counted(module: Any, work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, int, int, int]:
    module.synchronize()  # reads what kernels of earlier tests wrote of their errors
    before = module.statistics()
    result = work()
    module.synchronize()
    after = module.statistics()
    return result, *(after[k] - before[k] for k in ("copies", "copied_bytes", "launches"))


@pytest.mark.any_driver
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16, torch.complex64, torch.float8_e5m2])
def test_values_in_both_directions(shape: str, dtype: torch.dtype) -> None:
    change = SHAPES[shape]
    host = made(dtype)
    wanted = change(host)
    raw = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    there = torch.zeros(wanted.shape, dtype=dtype, device=NAME)
    there.copy_(wanted)
    assert torch.equal(there.cpu().view(raw), wanted.contiguous().view(raw))
    source = change(host.to(NAME))
    assert torch.equal(source.cpu().view(raw), wanted.contiguous().view(raw))
    if shape != "a row for all":
        room = torch.zeros_like(host)
        change(room).copy_(source)
        assert torch.equal(change(room).contiguous().view(raw), wanted.contiguous().view(raw))
        spread = torch.zeros(host.shape, dtype=dtype, device=NAME)
        change(spread).copy_(wanted)
        held = torch.zeros_like(host)
        change(held).copy_(wanted)
        assert torch.equal(spread.cpu().view(raw), held.view(raw))


@pytest.mark.host_only
@pytest.mark.parametrize(
    "shape", ["half of each row", "every second row", "planes in another order"]
)
def test_one_command_to_the_host(module: Any, shape: str) -> None:
    source = SHAPES[shape](made().to(NAME))
    result, copies, moved, launches = counted(module, lambda: source.cpu())
    assert torch.equal(result, SHAPES[shape](made()))
    assert (copies, moved, launches) == (1, source.nbytes, 0)


@pytest.mark.host_only
def test_one_command_to_the_device_from_pinned_memory(module: Any) -> None:
    host = made().pin_memory()[:, :, :, 8:40]
    room = torch.zeros(3, 4, 10, 64, device=NAME)
    _, copies, moved, launches = counted(
        module, lambda: room[..., 8:40].copy_(host, non_blocking=True)
    )
    assert (copies, moved, launches) == (1, host.nbytes, 0)
    assert torch.equal(room[..., 8:40].cpu(), host)
    assert room[..., :8].sum().item() == room[..., 40:].sum().item() == 0


@pytest.mark.host_only
def test_a_large_block_goes_at_once(module: Any) -> None:
    host = torch.rand(64, 100, 400)[:, :50]
    there, copies, moved, launches = counted(module, lambda: host.to(NAME))
    assert (copies, moved, launches) == (1, host.nbytes, 0)
    assert torch.equal(there.cpu(), host)


@pytest.mark.any_driver
def test_short_rows_and_other_dtypes_go_as_before() -> None:
    host = torch.rand(300, 500)
    assert torch.equal(host.t().to(NAME).cpu(), host.t())
    assert torch.equal(host[:, ::3].to(NAME).cpu(), host[:, ::3])
    assert torch.equal(host.to(NAME)[:, ::3].cpu(), host[:, ::3])
    assert torch.equal(host.to(NAME)[:, :50].cpu().double(), host[:, :50].double())
    room = torch.zeros(300, 50, dtype=torch.float64)
    room.copy_(host.to(NAME)[:, :50])
    assert torch.equal(room, host[:, :50].double())
    ruled = torch.view_as_complex(torch.rand(200, 100, 2))
    assert torch.equal(ruled.conj()[:, :60].to(NAME).cpu().resolve_conj(), ruled[:, :60].conj())
