"""One side of a comparison (a device in its own process) and the record that an example returns."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch


@dataclass
class Meter:
    """What a piece of work cost: seconds, launches of the driver, fallbacks by op, peak bytes."""

    seconds: float = 0.0
    native: int = 0
    fallbacks: dict[str, int] = field(default_factory=dict)
    peak: int = 0


@dataclass
class Record:
    """Result of one example: what came out, what it cost and which checks hold.

    accuracies: in 0..1, one for each seed, of an example that measures one.
    """

    name: str
    result: str
    seconds: float
    against: float
    native: int
    fallbacks: dict[str, int]
    peak: int
    checks: dict[str, bool]
    accuracies: tuple[float, ...] = ()

    @property
    def ok(self) -> bool:
        return all(self.checks.values())

    def lines(self) -> list[str]:
        marks = [f"  {'ok  ' if good else 'FAIL'} {text}" for text, good in self.checks.items()]
        return [f"{self.name}: {self.result}", *marks]

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows as text, a line below the first one."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    lines.insert(1, "-+-".join("-" * w for w in widths))
    return "\n".join(lines)


def synchronize(device: str) -> None:
    """Waits for the device; the CPU is always done."""
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def tally(device: str) -> tuple[int, dict[str, int]]:
    """Launches of the driver, and calls of each op that fell back, since the process started."""
    if device == "cpu":
        return 0, {}
    module = torch.get_device_module(device)
    counts = module.fallback.counts()
    return module.statistics()["launches"], {op: count.calls for op, count in counts.items()}


@contextmanager
def metered(device: str) -> Iterator[Meter]:
    """Fills a Meter with what the block cost on the device."""
    meter, own = Meter(), device != "cpu"
    launches, before = tally(device)
    if own:
        torch.get_device_module(device).reset_peak_memory_stats()
    synchronize(device)
    start = time.perf_counter()
    yield meter
    synchronize(device)
    meter.seconds = time.perf_counter() - start
    launched, now = tally(device)
    meter.native = launched - launches
    meter.peak = torch.get_device_module(device).max_memory_allocated() if own else 0
    meter.fallbacks = {op: n - before.get(op, 0) for op, n in now.items() if n > before.get(op, 0)}


class Side:
    """A device in a process of its own, so that two thread pools never disturb one another.

    The process lives until the end of the `with` block and sleeps while the other side works.
    """

    def __init__(self, device: str, environment: dict[str, str] | None = None) -> None:
        self.device = device
        before = dict(os.environ)
        os.environ.update(environment or {})
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        self.process = self._pool.submit(os.getpid).result()
        os.environ.clear()
        os.environ.update(before)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns function(device, *arguments), computed in the side's process."""
        return self.begin(function, *arguments).result()

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """The same without waiting for it."""
        return self._pool.submit(function, self.device, *arguments)


def default_device() -> str:
    """Name of the accelerator that this torch has, else "cpu"."""
    found = torch.accelerator.current_accelerator()
    return found.type if found is not None else "cpu"


def side_options(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows the two sides of a comparison."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--against", default="cpu")
    return parser


def standalone(run: Callable[[str, str], Record], description: str | None) -> int:
    """An example as a program: reads the sides, prints the record, gives the exit status."""
    options = side_options(description).parse_args()
    record = run(options.device, options.against)
    print(*record.lines(), sep="\n")
    return 0 if record.ok else 1
