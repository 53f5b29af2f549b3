"""Every collective on every rank, against what the CPU computes from all ranks' inputs."""

from __future__ import annotations

import itertools
import os
import traceback
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.testing import assert_close

D = os.environ.get("DEVICE", "graft")
MOVED = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
    torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64,
]  # fmt: skip
OPERATIONS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT,
              "min": ReduceOp.MIN, "max": ReduceOp.MAX, "band": ReduceOp.BAND,
              "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR}  # fmt: skip
LINEAR = {"sum", "avg"}
BITWISE = {"band", "bor", "bxor"}
TIMEOUT = timedelta(seconds=30)


def piece(rank: int, dtype: torch.dtype, count: int = 12) -> torch.Tensor:
    """A rank's input: small integers, so that every dtype holds every result exactly."""
    grid = (torch.arange(count) * (rank + 2) + rank) % 3 + 1
    if dtype == torch.bool:
        return grid % 2 == 0
    if dtype.is_complex:
        return torch.complex(grid.float(), -grid.float()).to(dtype)
    if dtype.is_signed and not dtype.is_floating_point:
        grid = torch.where(grid % 2 == 1, -grid, grid)  # AVG rounds toward 0
    return grid.to(dtype)


def reduced(parts: list[torch.Tensor], operation: str) -> torch.Tensor:
    dtype = parts[0].dtype
    wide = torch.stack([part.to(torch.complex128 if dtype.is_complex else torch.float64)
                        if dtype.is_complex or dtype.is_floating_point else part.long()
                        for part in parts])  # fmt: skip
    if operation in LINEAR:
        result = wide.sum(0)
        if operation == "avg":
            whole = not (dtype.is_complex or dtype.is_floating_point)
            result = result.div(len(parts), rounding_mode="trunc" if whole else None)
    elif operation in BITWISE:
        function = getattr(
            torch, {"band": "bitwise_and", "bor": "bitwise_or", "bxor": "bitwise_xor"}[operation]
        )
        result = wide[0]
        for part in wide[1:]:
            result = function(result, part)
    else:
        result = {"product": lambda: wide.prod(0), "min": lambda: wide.amin(0),
                  "max": lambda: wide.amax(0)}[operation]()  # fmt: skip
    return result.to(dtype)


def reducible(dtype: torch.dtype, operation: str) -> bool:
    if dtype.is_complex:
        return operation in LINEAR
    if dtype == torch.bool:
        return operation != "avg"
    return operation not in BITWISE or not dtype.is_floating_point


class Check:
    """One rank's view: rank, size, dtype, and whether works are waited for."""

    def __init__(self, rank: int, size: int, dtype: torch.dtype, asynchronous: bool) -> None:
        self.rank, self.size, self.dtype, self.asynchronous = rank, size, dtype, asynchronous
        self.parts = [piece(r, dtype) for r in range(size)]
        self.mine = self.parts[rank].to(D)
        self.root = size - 1

    def call(self, function: Callable[..., Any], *given: Any, **options: Any) -> None:
        work = function(*given, async_op=self.asynchronous, **options)
        assert (work is not None) == self.asynchronous
        if work is not None:
            work.wait()

    def room(self, *sizes: int) -> torch.Tensor:
        return torch.zeros(sizes or (12,), dtype=self.dtype, device=D)

    def rooms(self) -> list[torch.Tensor]:
        return [self.room() for _ in range(self.size)]

    def broadcast(self) -> None:
        self.call(dist.broadcast, self.mine, self.root)
        assert_close(self.mine.cpu(), self.parts[self.root])

    def all_reduce(self) -> None:
        for name, operation in OPERATIONS.items():
            if reducible(self.dtype, name):
                tensor = self.mine.clone()
                self.call(dist.all_reduce, tensor, operation)
                assert_close(
                    tensor.cpu(), reduced(self.parts, name), msg=lambda m, n=name: f"{n}: {m}"
                )

    def reduce(self) -> None:
        tensor = self.mine.clone()
        self.call(dist.reduce, tensor, self.root, ReduceOp.SUM)
        own = reduced(self.parts, "sum") if self.rank == self.root else self.parts[self.rank]
        assert_close(tensor.cpu(), own)

    def all_gather(self) -> None:
        rooms = self.rooms()
        self.call(dist.all_gather, rooms, self.mine)
        assert_close([room.cpu() for room in rooms], self.parts)

    def all_gather_into_tensor(self) -> None:
        room = self.room(self.size * 12)
        self.call(dist.all_gather_into_tensor, room, self.mine)
        assert_close(room.cpu(), torch.cat(self.parts))

    def gather(self) -> None:
        rooms = self.rooms() if self.rank == self.root else None
        self.call(dist.gather, self.mine, rooms, self.root)
        if rooms is not None:
            assert_close([room.cpu() for room in rooms], self.parts)

    def scatter(self) -> None:
        room = self.room()
        given = [part.to(D) for part in self.parts] if self.rank == self.root else None
        self.call(dist.scatter, room, given, self.root)
        assert_close(room.cpu(), self.parts[self.rank])

    def reduce_scatter(self) -> None:
        room = self.room()
        shifted = [piece(self.rank + to, self.dtype).to(D) for to in range(self.size)]
        self.call(dist.reduce_scatter, room, shifted)
        parts = [piece(r + self.rank, self.dtype) for r in range(self.size)]
        assert_close(room.cpu(), reduced(parts, "sum"))

    def reduce_scatter_tensor(self) -> None:
        for name, operation in OPERATIONS.items():
            if not reducible(self.dtype, name):
                continue
            room = self.room()
            given = torch.cat([piece(self.rank + to, self.dtype) for to in range(self.size)]).to(D)
            self.call(dist.reduce_scatter_tensor, room, given, operation)
            parts = [piece(r + self.rank, self.dtype) for r in range(self.size)]
            assert_close(room.cpu(), reduced(parts, name), msg=lambda m, n=name: f"{n}: {m}")

    def all_to_all(self) -> None:
        rooms = self.rooms()
        given = [piece(self.rank + 3 * to, self.dtype).to(D) for to in range(self.size)]
        self.call(dist.all_to_all, rooms, given)
        assert_close([room.cpu() for room in rooms],
                     [piece(r + 3 * self.rank, self.dtype) for r in range(self.size)])  # fmt: skip

    def all_to_all_single(self) -> None:
        # Rank r sends r + to + 1 rows of two to each rank.
        given = torch.cat([piece(self.rank, self.dtype, 2 * (self.rank + to + 1))
                           for to in range(self.size)]).view(-1, 2).to(D)  # fmt: skip
        splits = [self.rank + to + 1 for to in range(self.size)]
        room = self.room(sum(splits), 2)
        self.call(dist.all_to_all_single, room, given, splits, splits)
        arrived = [piece(r, self.dtype, 2 * (r + self.rank + 1)) for r in range(self.size)]
        assert_close(room.cpu(), torch.cat(arrived).view(-1, 2))

    def send_and_receive(self) -> None:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        room = self.room()
        if self.asynchronous:
            works = [dist.isend(self.mine, after), dist.irecv(room, before)]
            for work in works:
                work.wait()
        elif self.rank % 2 == 0:
            dist.send(self.mine, after)
            dist.recv(room, before)
        else:
            dist.recv(room, before)
            dist.send(self.mine, after)
        assert_close(room.cpu(), self.parts[before])

    def coalesced(self) -> None:
        tensors = [self.mine.clone(), self.mine.repeat(3)]
        gathered = [self.room(self.size * 12), self.room(self.size * 36)]
        pieces = [self.room(), self.room(36)]
        sources = [torch.cat([self.mine] * self.size), torch.cat([self.mine.repeat(3)] * self.size)]
        total = reduced(self.parts, "sum")
        self._together(lambda: [dist.all_reduce(tensor) for tensor in tensors])
        assert_close([tensor.cpu() for tensor in tensors], [total, total.repeat(3)])
        self._together(lambda: [dist.all_gather_into_tensor(out, given) for out, given in zip(
            gathered, [self.mine, self.mine.repeat(3)], strict=True)])  # fmt: skip
        assert_close([out.cpu() for out in gathered],
                     [torch.cat(self.parts), torch.cat([part.repeat(3) for part in self.parts])])  # fmt: skip
        self._together(lambda: [dist.reduce_scatter_tensor(out, given) for out, given in zip(
            pieces, sources, strict=True)])  # fmt: skip
        assert_close([out.cpu() for out in pieces], [total, total.repeat(3)])

    def _together(self, calls: Callable[[], Any]) -> None:
        with dist._coalescing_manager(async_ops=self.asynchronous) as manager:
            calls()
        if self.asynchronous:
            manager.wait()


COLLECTIVES = ["broadcast", "all_reduce", "reduce", "all_gather", "all_gather_into_tensor",
               "gather", "scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all",
               "all_to_all_single", "send_and_receive", "coalesced"]  # fmt: skip
CASES = {
    f"{name}-{str(dtype).removeprefix('torch.')}-{'async' if asynchronous else 'sync'}":
        (name, dtype, asynchronous)
    for name, dtype, asynchronous in itertools.product(COLLECTIVES, MOVED, [False, True])
}  # fmt: skip


def outcomes(cases: dict[str, Callable[[], None]]) -> dict[str, str | None]:
    """What each case raised. Where only some ranks failed they are out of step: the rest is not run."""
    results: dict[str, str | None] = {}
    failed = None
    for name, case in cases.items():
        if failed is not None:
            results[name] = f"not run: {failed} failed before"
            continue
        try:
            case()
            results[name] = None
        except Exception:
            results[name] = traceback.format_exc()
        if not in_step(name, results[name] is None):
            failed = name
    return results


def in_step(name: str, passed: bool) -> bool:
    """Whether a case ended alike on all ranks, by the store that they met in."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{name}/{dist.get_rank()}", str(passed))
    return len({store.get(f"{name}/{rank}") for rank in range(dist.get_world_size())}) == 1


def collectives(rank: int, size: int) -> dict[str, str | None]:
    """Every collective with every dtype, in this order on every rank."""
    warnings.simplefilter("ignore")
    # Without a name PyTorch takes the backend of the accelerator, if that has devices.
    dist.init_process_group("graft" if D == "ve" else None, timeout=TIMEOUT)
    return outcomes({
        label: getattr(Check(rank, size, dtype, asynchronous), name)
        for label, (name, dtype, asynchronous) in CASES.items()
    })  # fmt: skip
