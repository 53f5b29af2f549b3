"""The rows of torch.device("ve"): what the slot costs beside the device that carries it."""

from __future__ import annotations

from collections.abc import Callable

import cases
import compile_worker
import worker
from pairs import Row, difference_row, interleave, ratio_row
from record import Side

DEVICES = {"GRAFT_VE_DEVICES": "host"}
SIDES = ("ve:0", "graft:0")  # one device under its two names
CALL_GOAL, COMPILED_GOAL = 0.6, 1.03  # µs; of the device's own time
EAGER = ("digits training epoch", "ResNet-50 inference b1")
COMPILED = ("ResNet-50 b1", "GPT-2 b4 s128")


def call_row(sides: tuple[Side, Side], threads: int, quick: bool, name: str) -> Row:
    """What a call on one element takes longer, in µs."""
    for side in sides:
        side.call(worker.prepare, name, threads)

    def sampler(side: Side) -> Callable[[], float]:
        return lambda: 1e6 * float(side.call(worker.sample))

    samples = interleave(3 if quick else 11, *map(sampler, sides))
    return difference_row(f"{name}: more than the device itself", CALL_GOAL, "µs", *samples)


def compiled_row(threads: int, quick: bool, name: str) -> Row:
    """An optimized model on both."""
    with Side(SIDES[0], DEVICES) as device, Side(SIDES[1]) as against:
        for side in (device, against):
            side.call(compile_worker.prepare, "optimize", name, threads)

        def sampler(side: Side) -> Callable[[], float]:
            return lambda: float(side.call(compile_worker.sample))

        samples = interleave(3 if quick else 11, sampler(device), sampler(against))
    return ratio_row(f"optimized {name}", COMPILED_GOAL, *samples)


def measure(
    sides: tuple[Side, Side], threads: int, quick: bool,
    wanted: Callable[[str], object], show: Callable[[Row], None],
) -> None:  # fmt: skip
    """Shows the wanted rows that are no case of their own."""
    for name in (f"tiny {name}" for name in cases.TINY):
        if wanted(name):
            show(call_row(sides, threads, quick, name))
    for name in COMPILED:
        if wanted(f"optimized {name}"):
            show(compiled_row(threads, quick, name))
