# conformance/torch_conformance/run/state.py: what one run works on and has found so far.
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from torch_conformance import SetupError
from torch_conformance.cells.cases import Cell
from torch_conformance.report import results, schema
from torch_conformance.report.journal import Journal, complete_before, seconds_before
from torch_conformance.run.worker import Settings


class Run:
    """What one run works on and has found so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder = Path(options.out or f"conformance-{options.device.replace(':', '')}")
        self.journal = Journal(self.folder / "cells.jsonl")
        self.start = time.monotonic()
        self.spent = 0.0
        self.device: dict[str, Any] = {}
        self.dropping: list[dict[str, str]] = []  # environments in which launches are dropped
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
        elif not self.options.restart and not complete_before(self.folder):
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
        self.spent = seconds_before(self.folder)
        return header | {"started": old.get("started", header["started"])}

    def settings(self) -> Settings:
        from torch_conformance.suites import upstream

        o = self.options
        rows = [Path(p).resolve() for p in o.expectations]
        return Settings(o.device, upstream.__name__, o.plugin, rows, o.fallback, o.threads,
                        label=o.label)  # fmt: skip

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
