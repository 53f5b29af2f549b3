"""The rows of torch.device("ve"): what the slot costs beside the device that carries it."""

from __future__ import annotations

from collections.abc import Callable

import cases
import compile_worker
from pairs import Row, difference_row, interleave, ratio_row
from record import Side

DEVICES = {"GRAFT_VE_DEVICES": "host"}
SIDES = ("ve:0", "graft:0")  # one device under its two names
CALL_GOAL, COMPILED_GOAL = 0.6, 1.03  # µs; of the device's own time
EAGER = ("digits training epoch", "ResNet-50 inference b1")
COMPILED = ("ResNet-50 b1", "GPT-2 b4 s128")
PAIRS = 11

# Bench.pairs: samples of a case on both sides, in seconds, and the share that the idle side burns.
Pairs = Callable[[str, int], tuple[list[float], list[float], float]]


def call_row(pairs: Pairs, name: str) -> Row:
    """What a call on one element takes longer, in µs."""
    ours, theirs, _ = pairs(name, PAIRS)
    micro = [[1e6 * one for one in samples] for samples in (ours, theirs)]
    return difference_row(f"{name}: more than the device itself", CALL_GOAL, "µs", *micro)


def compiled_row(threads: int, quick: bool, name: str) -> Row:
    """An optimized model on both."""
    with Side(SIDES[0], DEVICES) as device, Side(SIDES[1]) as against:
        for side in (device, against):
            side.call(compile_worker.prepare, "optimize", name, threads)

        def sampler(side: Side) -> Callable[[], float]:
            return lambda: float(side.call(compile_worker.sample))

        samples = interleave(3 if quick else PAIRS, sampler(device), sampler(against))
    return ratio_row(f"optimized {name}", COMPILED_GOAL, *samples)


def measure(
    pairs: Pairs, threads: int, quick: bool,
    wanted: Callable[[str], object], show: Callable[[Row], None],
) -> None:  # fmt: skip
    """Shows the wanted rows that are no case of their own."""
    for name in (f"tiny {name}" for name in cases.TINY):
        if wanted(name):
            show(call_row(pairs, name))
    for name in COMPILED:
        if wanted(f"optimized {name}"):
            show(compiled_row(threads, quick, name))
