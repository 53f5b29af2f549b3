"""The rows of the OpenCL driver that are no ratio of two times: enqueueing, and the first run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import cases
import worker
from pairs import Row, difference_row
from record import Side

DEVICES = {"GRAFT_DEVICES": "opencl"}
ENQUEUE_GOAL, COLD_GOAL = 4.0, 15.0  # µs; s
COLD = "digits: first run, empty cache"


def enqueue_row(device: Side, against: Side, threads: int, name: str, count: int) -> Row:
    """What a call costs its caller, who waits for nothing: µs, beside the CPU's whole call."""
    taken = []
    for side in (device, against):
        side.call(worker.prepare, f"tiny {name}", threads)
        taken.append([1e6 * side.call(worker.enqueued) for _ in range(count)])
    ours, theirs = taken
    value = sorted(ours)[len(ours) // 2]
    return Row(f"tiny {name}: to enqueue", ENQUEUE_GOAL, value, min(ours), max(ours),
               min(ours), min(theirs), "µs")  # fmt: skip


def cold_row(device: str) -> Row:
    """What the first training of a fresh machine takes longer: kernels are compiled.

    PoCL keeps machine code of its own, which is as empty at first as Graft's cache.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as code:
        environment = DEVICES | {"GRAFT_CACHE_DIR": folder, "POCL_CACHE_DIR": code}
        seconds = []
        for _ in range(2):
            with Side(device, environment) as side:
                seconds.append(side.call(worker.seconds_of, "digits training epoch"))
    return difference_row(COLD, COLD_GOAL, "s", seconds[:1], seconds[1:])


def measure(
    device: Side, against: Side, threads: int, quick: bool,
    wanted: Callable[[str], object], show: Callable[[Row], None],
) -> None:  # fmt: skip
    """Shows the wanted rows."""
    for name in cases.TINY:
        if wanted(f"tiny {name}: to enqueue"):
            show(enqueue_row(device, against, threads, name, 3 if quick else 11))
    if wanted(COLD):
        show(cold_row(device.device))
