"""The rows of several processes: collectives and DDP beside Gloo on the CPU, loading, handing on."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any

import handing
import rank
from pairs import Row, ratio_row
from record import Side

SIZE = 2
COLLECTIVES = {"all_reduce of 64 MB": 0.6, "all_reduce of 4 kB": 0.5}
COMMUNICATION, COMMUNICATION_GOAL = "DDP: what communication adds to a step", 1.0
HANDED = "a tensor of 64 MB to another process"
LEAST = 1e-6  # seconds that communication takes at least: a ratio needs a denominator


class Ranks:
    """Processes of one group, each with a thread and a device of its own; side starts one."""

    def __init__(self, device: str, pairs: int, side: Callable[..., Side] = Side) -> None:
        self.device, self.pairs = device, pairs
        self._sides = [side(device, {"OMP_NUM_THREADS": "1"}) for _ in range(SIZE)]

    def __enter__(self) -> Ranks:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = int(probe.getsockname()[1])
        begun = [side.begin(rank.meet, port, number, SIZE)
                 for number, side in enumerate(self._sides)]  # fmt: skip
        for each in begun:
            each.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if kind is None:
            self.call(rank.part)
        for side in self._sides:
            side.__exit__()

    def call(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What function gives on every rank."""
        begun = [side.begin(function, *arguments) for side in self._sides]
        return [each.result() for each in begun]

    def sample(self, name: str, where: str) -> float:
        """Seconds of the slowest rank."""
        return float(max(self.call(rank.sample, name, where)))

    def interleaved(self, names: list[str], take: Callable[[str], float]) -> dict[str, list[float]]:
        """What take gives for the device and for the CPU, in turn."""
        sides = [self.device, "cpu"]
        for name in names:
            for where in sides:
                self.call(rank.prepare, name, where)
        taken: dict[str, list[float]] = {where: [] for where in sides}
        for i in range(self.pairs):
            for where in sides if i % 2 else reversed(sides):
                taken[where].append(take(where))
        for name in names:
            for where in sides:
                self.call(rank.drop, name, where)
        return taken

    def collective(self, name: str, goal: float) -> Row:
        taken = self.interleaved([name], lambda where: self.sample(name, where))
        return ratio_row(name, goal, taken[self.device], taken["cpu"])

    def communication(self) -> Row:
        """The time of a step with DDP less that of the same step on every rank for itself."""

        def take(where: str) -> float:
            alone = self.sample("step alone", where)
            return max(self.sample("DDP step", where) - alone, LEAST)

        taken = self.interleaved(["DDP step", "step alone"], take)
        return ratio_row(COMMUNICATION, COMMUNICATION_GOAL, taken[self.device], taken["cpu"])


def handed_row(device: Side) -> Row:
    """Bytes that move, beside those of the tensor."""
    moved = float(device.call(handing.bytes_moved))
    return Row(HANDED, 0.0, moved, moved, moved, moved, 4.0 * handing.ELEMENTS, "bytes")


def measure(
    device: Side, quick: bool, wanted: Callable[[str], object], show: Callable[[Row], None]
) -> None:
    """Shows the wanted rows but that of data loading, which has two sides."""
    collectives = {name: goal for name, goal in COLLECTIVES.items() if wanted(name)}
    if collectives or wanted(COMMUNICATION):
        with Ranks(device.device, 3 if quick else 11) as ranks:
            for name, goal in collectives.items():
                show(ranks.collective(name, goal))
            if wanted(COMMUNICATION):
                show(ranks.communication())
    if wanted(HANDED):
        show(handed_row(device))
