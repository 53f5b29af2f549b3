# python/torch_graft/conformance/running.py: one run from its options to its files and its exit code.
"""Exit codes: 0 green, 1 not green, 2 could not start, 3 green so far but stopped before the end."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from torch_graft.conformance import SetupError, cases, junit, results, schema
from torch_graft.conformance.cases import Cell
from torch_graft.conformance.expectations import Expectations
from torch_graft.conformance.pool import Pool
from torch_graft.conformance.progress import Progress
from torch_graft.conformance.results import Journal
from torch_graft.conformance.worker import Settings

SHOWN = 40  # red cells named on the terminal


class Run:
    """What one run works on and has found so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(options.out or f"conformance-{options.device.replace(':', '')}")
        self.journal = Journal(self.folder / "cells.jsonl")
        self.start = time.monotonic()
        self.spent = 0.0
        self.device: dict[str, Any] = {}
        self.complete = False

    def selection(self) -> dict[str, Any]:
        """The options that decide which cells there are and what they mean."""
        names = ("device", "suites", "ops", "dtypes", "aspects", "shard", "fallback", "plugin",
                 "expectations")  # fmt: skip
        chosen = {name: getattr(self.options, name) for name in names}
        chosen["shard"] = list(chosen["shard"])
        return chosen

    def header(self) -> dict[str, Any]:
        import torch

        return {"schema": schema.SCHEMA, "torch": torch.__version__, "started": results.now(),
                "selection": self.selection()}  # fmt: skip

    def prepare(self, cells: list[Cell]) -> list[Cell]:
        """Opens the journal; returns the cells that are still to run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        header = self.header()
        if self.options.resume and self.journal.path.exists():
            self.journal.read()
            header = self._resumed(header)
        elif not self.options.restart and not results.complete_before(self.folder):
            raise SetupError(
                f"{self.folder} holds a run that did not come to its end: --resume goes on with "
                "it, --restart begins anew, --out names another folder"
            )
        wanted = set(cells)
        self.journal.cells = {c: r for c, r in self.journal.cells.items() if c in wanted}
        self.journal.open(header)
        return [cell for cell in cells if cell not in self.journal.cells]

    def _resumed(self, header: dict[str, Any]) -> dict[str, Any]:
        for problem in self.journal.problems:
            say(f"{self.journal.path}: {problem}; the line is left out, its cell runs again")
        if self.journal.problems:
            say(f"the broken file is kept as {self.journal.path.with_suffix('.broken')}")
        old = self.journal.header
        if not old:
            return header
        theirs, ours = old.get("selection", {}), header["selection"]
        differing = [n for n in ours if theirs.get(n) != ours[n]]
        if differing or old.get("torch") != header["torch"]:
            name = differing[0] if differing else "torch"
            before, after = (theirs.get(name), ours[name]) if differing else (old.get("torch"),
                                                                           header["torch"])  # fmt: skip
            raise SetupError(
                f"{self.folder} holds a run with {name} = {before}, not {after}: resume it with the "
                "same options, or name another folder with --out"
            )
        self.spent = results.seconds_before(self.folder)
        return header | {"started": old.get("started", header["started"])}

    def settings(self) -> Settings:
        o = self.options
        return Settings(o.device, o.plugin, [Path(p).resolve() for p in o.expectations], o.fallback,
                        o.threads, {}, o.label)  # fmt: skip

    def execute(self, cells: list[Cell], todo: list[Cell]) -> None:
        """Runs what is to do; an interruption or the time limit leaves complete False."""
        from torch_graft.conformance import native

        progress = Progress(len(cells), len(cells) - len(todo))
        until = self.start + self.options.total_limit if self.options.total_limit else None
        try:
            self._pooled(self.settings(), todo, until, progress)
            progress.end()
            proven = not self.options.prove_native or native.prove(self, cells, until)
            self.complete = proven and set(cells) <= self.journal.cells.keys()
        except KeyboardInterrupt:
            say("\ninterrupted: what is finished is kept; --resume goes on")
        finally:
            self.journal.close()

    def _pooled(
        self, settings: Settings, todo: list[Cell], until: float | None, progress: Progress
    ) -> None:
        o = self.options
        with Pool(settings, o.workers, o.time_limit, o.start) as pool:
            judge = Expectations.built_in(o.device.split(":")[0], settings.expectations)
            for cell, outcome in pool.run(cases.group(todo), until):
                if outcome.status in ("crash", "hang"):
                    outcome = judge.judged(cell, outcome)
                self.device = pool.device or self.device
                self.journal.add(outcome.record(cell))
                progress.finished(cell, outcome.status in schema.BAD)
            self.device = pool.device or self.device

    def collected(self, cells: list[Cell]) -> dict[str, Any]:
        """The results file's content, in the order of the listing."""
        found = self.journal.cells
        return {
            "schema": schema.SCHEMA,
            "device": self.device or {"name": self.options.device, "label": self.options.device},
            "started": self.journal.header["started"],
            "seconds": round(self.spent + time.monotonic() - self.start, 3),
            "complete": self.complete,
            "shard": list(self.options.shard),
            "cells": [found[cell] for cell in cells if cell in found],
        }


def say(text: str) -> None:
    print(text, file=sys.stderr)


def run(options: argparse.Namespace) -> int:
    from torch_graft.conformance import native

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
        native.check(work)  # before hours of cells, not after
    todo = work.prepare(cells)
    if todo or (options.prove_native and native.unproven(work, cells)):
        work.execute(cells, todo)
    else:
        work.complete = True
        work.device = _earlier_device(work.folder)
    found = work.collected(cells)
    write(found, work.folder, options.page)
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


def write(found: dict[str, Any], folder: Path, page: bool) -> None:
    results.save(found, folder / "results.json")
    junit.write(found, folder / "junit.xml")
    if page:
        from torch_graft.conformance import report

        report.write_page(found, folder / "report.html")


def summarize(found: dict[str, Any], folder: Path) -> None:
    red = [c for c in found["cells"] if c["status"] in schema.BAD]
    for cell in red[:SHOWN]:
        name = " ".join(results.key(cell))
        print(f"{cell['status']:5} {name}: {' '.join(cell['message'].split())[:200]}")
    if len(red) > SHOWN:
        print(f"... and {len(red) - SHOWN} more")
    counts = results.totals(found["cells"])
    samples = sum(c["samples"] for c in found["cells"])
    text = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    print(f"{len(found['cells'])} cells, {samples} samples in {found['seconds']:.1f} s: {text}")
    print(f"files in {folder}" + ("" if found["complete"] else "; not complete: --resume goes on"))
