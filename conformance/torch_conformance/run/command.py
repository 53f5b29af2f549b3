# conformance/torch_conformance/run/command.py: one run from its options to its files and its exit code.
"""Exit codes: 0 green, 1 not green, 2 could not start, 3 green so far but stopped before the end."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.report import journal, results, schema
from torch_conformance.run import proving
from torch_conformance.run.pool import Pool
from torch_conformance.run.progress import Progress
from torch_conformance.run.state import Run, say

SHOWN = 40  # red cells named on the terminal


def execute(work: Run, cells: list[Cell], todo: list[Cell]) -> None:
    """Runs what is to do; an interruption or the time limit leaves work.complete False."""
    progress = Progress(len(cells), len(cells) - len(todo))
    until = work.start + work.options.total_limit if work.options.total_limit else None
    try:
        _pooled(work, todo, until, progress)
        progress.end()
        proven = not work.options.prove_native or proving.prove(work, cells, until)
        work.complete = proven and set(cells) <= work.journal.cells.keys()
    except KeyboardInterrupt:
        say("\ninterrupted: what is finished is kept; --resume goes on")
    finally:
        work.journal.close()


def _pooled(work: Run, todo: list[Cell], until: float | None, progress: Progress) -> None:
    o, settings = work.options, work.settings()
    with Pool(settings, o.workers, o.time_limit, o.start) as pool:
        for cell, outcome in pool.run(cases.group(todo), until):
            if outcome.status in ("crash", "hang"):  # of others, the worker has judged
                outcome = pool.rows().judged(cell, outcome)
            work.device = pool.device or work.device
            work.journal.add(outcome.record(cell))
            progress.finished(cell, outcome.status in schema.BAD)
        work.device = pool.device or work.device


def run(options: argparse.Namespace) -> int:
    cells = cases.select(
        options.suites, options.ops, options.dtypes, options.aspects, options.shard
    )
    if not cells:
        raise SetupError(
            "no cell is left: the suites, entries, dtypes and aspects exclude each other"
        )
    if options.list:
        print("\n".join(" ".join(cell) for cell in cells))
        return 0
    for path in options.expectations:
        Expectations.built_in(options.device, [Path(path)])  # a broken file ends the run here
    work = Run(options)
    if options.prove_native:
        proving.check(work)  # before hours of cells, not after
    todo = work.prepare(cells)
    if todo or (options.prove_native and proving.unproven(work, cells)):
        execute(work, cells, todo)
    else:
        work.complete = True
        work.device = _earlier_device(work.folder)
    found = work.collected(cells)
    results.write(found, work.folder, options.page)
    summarize(found, work.folder)
    if not results.is_green(found["cells"]):
        return 1
    return 0 if work.complete else 3


def _earlier_device(folder: Path) -> dict[str, Any]:
    try:
        device: dict[str, Any] = schema.read(folder)["device"]
    except SetupError:
        return {}
    return device


def summarize(found: dict[str, Any], folder: Path) -> None:
    red = [c for c in found["cells"] if c["status"] in schema.BAD]
    for cell in red[:SHOWN]:
        name = " ".join(journal.key(cell))
        print(f"{cell['status']:5} {name}: {' '.join(cell['message'].split())[:200]}")
    if len(red) > SHOWN:
        print(f"... and {len(red) - SHOWN} more")
    counts = results.totals(found["cells"])
    samples = sum(c["samples"] for c in found["cells"])
    text = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    print(f"{len(found['cells'])} cells, {samples} samples in {found['seconds']:.1f} s: {text}")
    print(f"files in {folder}" + ("" if found["complete"] else "; not complete: --resume goes on"))
