"""A second process for tests: does what it is asked, and what it may be asked."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
import torch.multiprocessing as mp
from torch.utils.data import Dataset

HELD: list[Any] = []  # in the second process, between requests


def answer(request: tuple[Callable[..., Any], tuple[Any, ...]], outbox: Any) -> None:
    task, arguments = request
    try:
        result = (True, task(*arguments))
    except BaseException as error:
        result = (False, f"{type(error).__name__}: {error}")
    outbox.put(result)


def serve(inbox: Any, outbox: Any, *held: Any) -> None:
    HELD.extend(held)
    while (request := inbox.get()) is not None:
        answer(request, outbox)
        del request  # with its tensors


class OtherProcess:
    """A process of a start method, with values that it holds from the beginning."""

    def __init__(self, *held: Any, method: str = "spawn") -> None:
        context = mp.get_context(method)
        self.inbox, self.outbox = context.SimpleQueue(), context.SimpleQueue()
        self.process = context.Process(
            target=serve, args=(self.inbox, self.outbox, *held), daemon=True
        )
        self.process.start()

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.process.is_alive():
            self.inbox.put(None)
        self.process.join(60)
        assert not self.process.is_alive()

    def ask(self, task: Callable[..., Any], *arguments: Any) -> Any:
        self.inbox.put((task, arguments))
        del arguments
        return self.answer()

    def answer(self) -> Any:
        good, result = self.outbox.get()
        assert good, result
        return result

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(60)


def copied_bytes(device: str) -> int:
    return int(torch.get_device_module(device).statistics(device)["copied_bytes"])


def made(device: str, count: int) -> torch.Tensor:
    return torch.arange(float(count), device=device)


def same(*given: Any) -> Any:
    return given[0] if len(given) == 1 else given


def scaled_in_place(tensor: torch.Tensor, factor: float) -> None:
    tensor.mul_(factor)
    torch.get_device_module(tensor.device).synchronize()


def hold(*given: Any) -> None:
    HELD.extend(given)


def held_values() -> list[list[float]]:
    return [tensor.tolist() for tensor in HELD]


def let_go() -> None:
    HELD.clear()


def write_through_views(one: torch.Tensor, two: torch.Tensor) -> bool:
    one.fill_(1)
    two.add_(1)
    torch.get_device_module(two.device).synchronize()
    return one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()


def shared_blocks(collect: bool = True) -> int:
    """Blocks of this process that another one, or a message, still has."""
    from torch_graft import _C

    if collect:
        _C.collect_shared_memory()
    return _C.shared_blocks()


def facts(tensor: torch.Tensor) -> tuple[str, bool, bool, bool]:
    return type(tensor).__name__, tensor.requires_grad, tensor.is_leaf, tensor.grad is None


class MadeByWorkers(Dataset):
    """Rows that the worker makes on the device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index), device=self.device)


def stacked_and_pinned(rows: list[tuple[torch.Tensor, ...]]) -> torch.Tensor:
    """A batch that its worker pins."""
    batch = torch.stack([row[0] for row in rows]).pin_memory()
    assert batch.is_pinned()
    return batch
