"""Times deployed models beside the same models in process, what opening one takes, and offloaded models.

A deployed model is run by graft-infer, without Python. Each side has a process of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import deploy_worker  # noqa: E402
import offload_cases  # noqa: E402
import torch_graft  # noqa: E402
from pairs import Row, difference_row, interleave, ratio_row  # noqa: E402
from record import Side  # noqa: E402
from run import Bench  # noqa: E402
from table import Show, Table, command_line  # noqa: E402

TABLE = Table(
    "deploy", HERE.parent / "docs/measurements/deploy-speed.md", ("first", "beside"), "linear"
)
INFER = Path(torch_graft.__file__).parent / "bin/graft-infer"
GOAL, OPENING_GOAL = 1.0, 0.1
OPENED = "ResNet-50 b1"
OPENING = f"opening {OPENED} until its first result, beyond reading its file"
SECONDS = 2.0  # of a sample


class Deployed:
    """A model's file, and the process that holds the model it came from."""

    def __init__(self, side: Side, name: str, folder: str, options: argparse.Namespace) -> None:
        self.side, self.pairs = side, options.pairs
        self.path = f"{folder}/{name.replace(' ', '_')}.graft"
        files = side.call(deploy_worker.prepare, name, self.path, options.threads)
        given = [word for one in files for word in ("--input", one)]
        self.command = [str(INFER), self.path, *given]
        threads = {"OMP_NUM_THREADS": str(options.threads), "GRAFT_DEVICES": "host"}
        self.environment = os.environ | threads

    def infer(self, *more: str) -> str:
        command = [*self.command, *more]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def deployed(self) -> float:
        """The median of a run's seconds, as graft-infer tells it."""
        found = re.search(r"median ([0-9.]+) ms", self.infer("--bench", str(SECONDS)))
        assert found is not None
        return float(found[1]) / 1e3

    def first_result(self) -> float:
        begin = time.perf_counter()
        self.infer()
        return time.perf_counter() - begin

    def beside_process(self, name: str) -> Row:
        samples = interleave(
            self.pairs, self.deployed, lambda: self.side.call(deploy_worker.sample, SECONDS)
        )
        return ratio_row(f"deployed {name} / in process", GOAL, *samples)

    def opening(self) -> Row:
        self.first_result()  # warm: the file and the libraries are in memory
        samples = interleave(
            2 * self.pairs, self.first_result,
            lambda: self.side.call(deploy_worker.read, self.path),
        )  # fmt: skip
        return difference_row(OPENING, OPENING_GOAL, "s", *samples)


def measure(options: argparse.Namespace, show: Show) -> None:
    wanted = re.compile(options.pattern).search
    with tempfile.TemporaryDirectory() as folder, Side("graft") as side:
        for name in deploy_worker.MODELS:
            rows = [f"deployed {name} / in process"] + [OPENING] * (name == OPENED)
            if not any(map(wanted, rows)):
                continue
            model = Deployed(side, name, folder, options)
            if wanted(rows[0]):
                show(model.beside_process(name))
            if name == OPENED and wanted(OPENING):
                show(model.opening())
    with Side("graft") as device, Side("cpu") as against:
        bench = Bench(device, against, options.threads, options.pairs < offload_cases.PAIRS)
        for case in offload_cases.OFFLOADING.values():
            if wanted(case.name):
                show(bench.case(case))


def main() -> int:
    parser = command_line("Times deployed models beside the same models in process.", "the rows")
    return TABLE.run(parser, measure)


if __name__ == "__main__":
    raise SystemExit(main())
