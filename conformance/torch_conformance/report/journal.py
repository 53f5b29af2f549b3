# conformance/torch_conformance/report/journal.py: the cells of a run on disk, so that an interruption loses none.
"""cells.jsonl grows by a line for each finished cell; --resume reads it."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, TextIO

from torch_conformance import SetupError
from torch_conformance.cells.cases import Cell
from torch_conformance.report import schema
from torch_conformance.report.schema import SCHEMA, flaw


def key(cell: dict[str, Any]) -> Cell:
    return Cell(cell["suite"], cell["entry"], cell["dtype"], cell["aspect"])


class Journal:
    """The growing file of one run. The first line is the run's header."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.cells: dict[Cell, dict[str, Any]] = {}
        self.problems: list[str] = []
        self.file: TextIO | None = None

    def read(self) -> None:
        """Takes over the good lines of an earlier run; problems tells of the others."""
        lines = self.path.read_bytes().splitlines()
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
            except ValueError:
                self.problems.append(f"line {number} is not JSON")
                continue
            if number == 1:
                self._read_header(value)
            elif flaw(value):
                self.problems.append(f"line {number} {flaw(value)}")
            else:
                self.cells[key(value)] = value

    def _read_header(self, value: Any) -> None:
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            self.header = value
        else:
            self.problems.append("line 1 is not the header of a run")

    def open(self, header: dict[str, Any]) -> None:
        """Writes header and cells anew (a broken file is kept beside it) and stays open."""
        self.header = header
        if self.problems:
            os.replace(self.path, self.path.with_suffix(".broken"))
        fresh = self.path.with_suffix(".new")
        with fresh.open("w") as file:
            for value in (header, *self.cells.values()):
                file.write(json.dumps(value) + "\n")
        os.replace(fresh, self.path)
        self.file = self.path.open("a")

    def add(self, cell: dict[str, Any]) -> None:
        assert self.file is not None, "open() comes first"
        self.cells[key(cell)] = cell
        self.file.write(json.dumps(cell) + "\n")
        self.file.flush()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def complete_before(folder: Path) -> bool:
    """Whether a folder holds no finished cell, or a run that came to its end."""
    journal = folder / "cells.jsonl"
    if not journal.exists() or journal.read_bytes().count(b"\n") < 2:
        return True
    with contextlib.suppress(SetupError):
        return bool(schema.read(folder).get("complete"))
    return False


def seconds_before(folder: Path) -> float:
    """How long the run in a folder has taken so far."""
    with contextlib.suppress(SetupError):
        return float(schema.read(folder)["seconds"])
    return 0.0
