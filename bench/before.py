"""Measures this tree beside another one that is built, say the commit before a change, row by row.

A row that looks slower is measured again in new processes, because where a process lies in memory
can cost it a few hundredths: then a pair of processes counts as one measurement. One that stays
slower is measured so once more: of the hundreds of rows some look slower by chance. The exit status
is 1 if a row is slower by more than its interval each time.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import torch  # noqa: E402

import cases  # noqa: E402
import compile_cases  # noqa: E402
import compile_worker  # noqa: E402
import distributed_rows  # noqa: E402
import kernel_cases  # noqa: E402
import loading  # noqa: E402
import opencl_cases  # noqa: E402
import opencl_rows  # noqa: E402
import rank  # noqa: E402
import worker  # noqa: E402
from other_tree import OtherTree  # noqa: E402
from pairs import Row, Sampler, interleave, ratio_row  # noqa: E402
from record import Side, default_device  # noqa: E402

# Pairs of new processes for a row that looks slower: the fewest that give an interval of 95 %.
ROUNDS = 6
LOOKS = 2  # in new processes
# Makes a row ready in a tree's processes, and gives what samples it.
Prepare = Callable[[Any], Sampler]
StartSide = Callable[[str, dict[str, str] | None], Side]
Samples = tuple[list[float], list[float]]


def one_side(
    device: str, start: StartSide, environment: dict[str, str] | None = None
) -> AbstractContextManager[Any]:
    return start(device, environment)


def ranks(device: str, start: StartSide) -> AbstractContextManager[Any]:
    return distributed_rows.Ranks(device, 1, start)


@dataclass(frozen=True)
class Table:
    """The rows of a table of the bench, and the processes of a tree that measure them."""

    prepare: dict[str, Prepare]
    opened: Callable[[str, StartSide], AbstractContextManager[Any]] = one_side


def calling(sample: Callable[[str], float], function: Callable[..., Any], *more: Any) -> Prepare:
    def prepare(side: Side) -> Sampler:
        side.call(function, *more)
        return lambda: float(side.call(sample))

    return prepare


def in_ranks(name: str) -> Prepare:
    def prepare(group: distributed_rows.Ranks) -> Sampler:
        group.call(rank.prepare, name, group.device)
        return lambda: group.sample(name, group.device)

    return prepare


def eager(chosen: Iterable[str], threads: int) -> dict[str, Prepare]:
    return {name: calling(worker.sample, worker.prepare, name, threads) for name in chosen}


def compiled(threads: int) -> dict[str, Prepare]:
    kinds = {
        name: "graft compile" if case.training else "optimize"
        for name, case in compile_cases.CASES.items()
    }
    prepare = partial(calling, compile_worker.sample, compile_worker.prepare)
    return {name: prepare(kind, name, threads) for name, kind in kinds.items()}


def tables(threads: int) -> dict[str, Table]:
    tiny = [f"tiny {name}" for name in cases.TINY]
    opencl = partial(one_side, environment=opencl_rows.DEVICES)
    return {
        "eager": Table(eager([*cases.CASES, *loading.LOADING], threads)),
        "kernels": Table(eager(kernel_cases.KERNELS, threads)),
        "opencl": Table(eager([*opencl_cases.OPENCL, *tiny], threads), opencl),
        "compile": Table(compiled(threads)),
        "distributed": Table({name: in_ranks(name) for name in rank.CASES}, ranks),
    }


class Lacking(Exception):
    """The other tree lacks what a row measures."""


class Trees:
    """This tree and the other one: fresh processes of both whenever asked."""

    def __init__(self, other: Path, device: str, table: Table, pairs: int) -> None:
        self.other, self.device, self.table, self.pairs = other, device, table, pairs

    def samples(self, name: str, sides: tuple[Any, Any]) -> Samples:
        here, there = sides
        ours = self.table.prepare[name](here)
        try:
            theirs = self.table.prepare[name](there)
        except NotImplementedError as error:
            raise Lacking(name) from error
        return interleave(self.pairs, ours, theirs)

    def opened(self, stack: ExitStack) -> tuple[Any, Any]:
        here = self.table.opened(self.device, Side)
        there = self.table.opened(self.device, partial(OtherTree, self.other))
        return stack.enter_context(here), stack.enter_context(there)

    def again(self, names: list[str]) -> dict[str, list[float]]:
        """The ratio of each name in each of several pairs of new processes."""
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(ROUNDS if names else 0):
            with ExitStack() as stack:
                sides = self.opened(stack)
                for name in names:
                    found[name].append(ratio_row(name, 1.0, *self.samples(name, sides)).value)
        return found


def slower(row: Row) -> bool:
    """Whether the whole interval of a row lies above what it took before."""
    return row.low > 1


def show(row: Row, mark: str) -> None:
    print(f"{row.name:<36} {row.value:6.3f} [{row.low:.3f} - {row.high:.3f}] {mark}", flush=True)


def compare(trees: Trees, names: list[str]) -> tuple[int, list[Row]]:
    """Shows the row of each name. Returns how many were measured, and those that are slower in every look."""
    rows: list[Row] = []
    measured = 0
    with ExitStack() as stack:
        sides = trees.opened(stack)
        for name in names:
            try:
                samples = trees.samples(name, sides)
            except Lacking:
                print(f"{name:<36} is not in the other tree", flush=True)
                continue
            measured += 1
            row = ratio_row(name, 1.0, *samples)
            show(row, "again" if slower(row) else "")
            rows += [row] if slower(row) else []
    for look in range(LOOKS):
        suspects, rows = [row.name for row in rows], []
        for name, ratios in trees.again(suspects).items():
            row = ratio_row(name, 1.0, ratios, [1.0] * len(ratios))
            mark = "again" if look + 1 < LOOKS else "slower"
            show(row, mark if slower(row) else "not slower")
            rows += [row] if slower(row) else []
    return measured, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("tree", type=Path, help="the other tree, built: it has a .venv")
    parser.add_argument("pattern", nargs="?", default="", help="regular expression on case names")
    parser.add_argument("--table", choices=tables(1), help="this one alone")
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--pairs", type=int, default=11)
    options = parser.parse_args()
    known = tables(options.threads)
    found: list[Row] = []
    measured = 0
    for table in [known[options.table]] if options.table else known.values():
        names = [name for name in table.prepare if re.search(options.pattern, name)]
        trees = Trees(options.tree.resolve(), options.device, table, options.pairs)
        count, rows = compare(trees, names) if names else (0, [])
        found += rows
        measured += count
    print(f"{len(found)} of {measured} rows slower than before by more than their interval")
    for row in found:
        show(row, "slower")
    return 1 if found or not measured else 0


if __name__ == "__main__":
    raise SystemExit(main())
