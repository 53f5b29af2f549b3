# python/torch_graft/cli/tuning.py: measures which tiles a GPU's products should use, and shows it.
"""python -m torch_graft tune."""

from __future__ import annotations

import sys

import torch

from torch_graft import _C
from torch_graft import private_names as inside


class Table:
    """Prints each measurement, and remembers the best and the first one of a row."""

    def __init__(self) -> None:
        self.best: dict[str, tuple[str, float]] = {}
        self.first: dict[str, float] = {}

    def add(self, done: int, all_: int, row: str, shape: str, gflops: float) -> None:
        speed = f"{gflops:10.1f} GFLOP/s" if gflops else "    does not run"
        print(f"[{done:3}/{all_}] {row:18} {shape:20} {speed}", flush=True)
        self.first.setdefault(row, gflops)
        if gflops > self.best.get(row, ("", 0.0))[1]:
            self.best[row] = (shape, gflops)


def tune(index: int, candidates: int) -> int:
    """Measures on the device of an index; the exit code is 1 where there is nothing to tune."""
    table = Table()
    try:
        name = _C.device_properties(index).name
        print(
            f"{inside.privateuse1_name()}:{index} is '{name}'. Most of the time goes into compiling."
        )
        _C.tune(index, candidates, table.add)
    except (RuntimeError, TypeError, torch.AcceleratorError) as error:
        print(f"tune: {error}", file=sys.stderr)
        return 1
    if not table.best:
        print("No shape runs on this device, so nothing was kept.", file=sys.stderr)
        return 1
    print("\nKept for this device and this version of its driver:")
    for row, (shape, gflops) in table.best.items():
        first = table.first[row]
        gain = (
            f"{gflops / first:.2f} x the default's speed" if first else "the default does not run"
        )
        print(f"  {row:18} {shape:20} {gain}")
    return 0
