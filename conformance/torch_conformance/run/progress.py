# conformance/torch_conformance/run/progress.py: one line that says how far a run is and how long it still takes.
"""On a terminal the line is rewritten; elsewhere one is printed every ten seconds."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from torch_conformance.cells.cases import Cell

WIDTH = 20
EVERY = 10.0  # seconds between lines where nothing can be rewritten


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


class Progress:
    def __init__(
        self, total: int, done: int = 0, what: str = "cells", stream: TextIO | None = None
    ) -> None:
        self.stream = stream or sys.stderr
        self.what = what
        self.total = total
        self.before = self.done = done
        self.red = 0
        self.start = time.monotonic()
        self.live = self.stream.isatty()
        self.last = self.start if not self.live else 0.0

    def line(self, cell: Cell | None = None) -> str:
        elapsed = time.monotonic() - self.start
        share = self.done / self.total if self.total else 1.0
        new = self.done - self.before
        left = clock(elapsed / new * (self.total - self.done)) if new else "?"
        bar = "#" * int(WIDTH * share)
        now = f", {cell.entry} {cell.dtype} {cell.aspect}" if cell else ""
        return (
            f"[{bar:<{WIDTH}}] {self.done}/{self.total} {self.what}, {self.red} red, "
            f"{clock(elapsed)} gone, {left} left{now}"
        )

    def finished(self, cell: Cell, red: bool) -> None:
        self.done += 1
        self.red += red
        moment = time.monotonic()
        if moment - self.last >= (0.1 if self.live else EVERY):
            self.last = moment
            self._show(self.line(cell))

    def end(self) -> None:
        self._show(self.line())
        if self.live:
            self.stream.write("\n")

    def _show(self, text: str) -> None:
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\x1b[K" + text[:width])
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
