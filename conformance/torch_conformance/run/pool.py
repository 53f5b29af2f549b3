# conformance/torch_conformance/run/pool.py: spreads cells over worker processes and survives their deaths.
"""A worker that crashes or hangs gives its cell a row and is replaced; the rest of its job goes on."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_conformance import SetupError
from torch_conformance import private_names as inside
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.cells.outcome import Outcome
from torch_conformance.run import worker
from torch_conformance.run.worker import Settings

START_LIMIT = 180.0  # seconds for a worker to import torch and open the device
TICK = 0.25


@dataclass
class Worker:
    process: Any
    pipe: Any
    sample: Any
    errors: str
    job: deque[Cell] = field(default_factory=deque)  # the cells given and not finished
    cell: Cell | None = None
    since: float = field(default_factory=time.monotonic)
    ready: bool = False


def start_method(device: str, wanted: str = "auto") -> str:
    """ "fork" shares what is imported; "spawn" where the device's runtime forbids forking."""
    if wanted != "auto":
        return wanted
    import torch

    kind = device.split(":")[0]
    if kind == "cpu":
        return "fork"
    if inside.privateuse1_name() != kind:
        return "spawn"
    initialised = getattr(getattr(torch, kind, None), "is_initialized", None)
    return "fork" if initialised is not None and not initialised() else "spawn"


class Pool:
    """Use as a context manager; run() yields cells with their outcomes, in no order."""

    def __init__(self, settings: Settings, workers: int, limit: float, start: str = "auto") -> None:
        self.settings = settings
        self.limit = limit
        self.count = workers
        # A forked worker would inherit what the device read from the old environment.
        method = "spawn" if settings.environment else start_method(settings.device, start)
        self.context: Any = multiprocessing.get_context(method)
        self.may_spawn = method == "fork" and start == "auto"
        self.folder = tempfile.mkdtemp(prefix="torch-conformance-")
        self.workers: list[Worker] = []
        self.jobs: deque[list[Cell]] = deque()
        self.device: dict[str, Any] | None = None
        self.files: list[Path] = []  # of rows that the device's package states
        self.started = 0
        self.failed_starts = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for w in self.workers:
            w.process.kill()
        for w in self.workers:
            w.process.join(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def rows(self) -> Expectations:
        """The rows that hold for the device, which this process may not know; after a cell began."""
        kind = self.settings.device.split(":")[0]
        return Expectations.built_in(kind, self.settings.expectations, self.files)

    def run(
        self, jobs: list[list[Cell]], until: float | None = None
    ) -> Iterator[tuple[Cell, Outcome]]:
        """until: a time.monotonic() after which no further cell is begun."""
        self.jobs = deque(jobs)
        for _ in range(min(self.count, len(self.jobs))):
            self._start()
        while self.workers:
            if until is not None and time.monotonic() > until:
                self.jobs.clear()
                return
            pipes = {w.pipe: w for w in self.workers}
            for pipe in multiprocessing.connection.wait(list(pipes), TICK):
                if pipes[pipe] in self.workers:
                    yield from self._heard(pipes[pipe])
            for w in list(self.workers):
                yield from self._overdue(w)

    def _start(self) -> None:
        ours, theirs = self.context.Pipe()
        sample = self.context.Array("q", 1, lock=False)
        errors = os.path.join(self.folder, f"{self.started}.log")
        process = self.context.Process(
            target=worker.main, args=(self.settings, theirs, sample, errors), daemon=True
        )
        gc.freeze()  # a forked worker need not walk what it shares
        process.start()
        theirs.close()
        self.started += 1
        self.workers.append(Worker(process, ours, sample, errors))

    def _heard(self, w: Worker) -> Iterator[tuple[Cell, Outcome]]:
        try:
            message = w.pipe.recv()
        except (EOFError, OSError):
            yield from self._died(w)
            return
        kind = message[0]
        if kind == "refused":
            self._refused(message[1])
        if kind == "hello":
            _, self.device, self.files = message
            w.ready = True
        elif kind == "free":
            self._feed(w)
        elif kind == "begin":
            w.cell, w.since = message[1], time.monotonic()
        elif kind == "done":
            w.cell, w.since, self.failed_starts = None, time.monotonic(), 0
            w.job.popleft()
            yield message[1], message[2]
        elif kind == "lost":
            self._replace(w)

    def _refused(self, text: str) -> None:
        """Counting devices may already load a runtime that forbids forking: then workers are spawned."""
        if not self.may_spawn:
            raise SetupError(text)
        self.may_spawn = False
        self.context = multiprocessing.get_context("spawn")
        for w in list(self.workers):
            self._replace(w)

    def _feed(self, w: Worker) -> None:
        job = self.jobs.popleft() if self.jobs else None
        w.job = deque(job or ())
        w.since = time.monotonic()
        try:
            w.pipe.send(job)
        except (BrokenPipeError, OSError):
            return  # its death is heard next
        if job is None:
            self.workers.remove(w)
            w.process.join(10)
            w.process.kill()

    def _replace(self, w: Worker) -> None:
        """Ends a worker; what is left of its job comes first again."""
        self.workers.remove(w)
        w.process.kill()
        w.process.join(10)
        w.pipe.close()
        if w.job:
            self.jobs.appendleft(list(w.job))
        if self.jobs:
            self._start()

    def _died(self, w: Worker) -> Iterator[tuple[Cell, Outcome]]:
        w.process.join(10)
        how = _ending(w.process.exitcode)
        if w.cell is None:
            self.failed_starts += 1
            if self.failed_starts >= 3:
                raise self._unusable(w, f"keeps no process alive: {how}")
        yield from self._row(w, "crash", how)

    def _unusable(self, w: Worker, how: str) -> SetupError:
        words = _last_words(w.errors) or "none"
        return SetupError(f"the device '{self.settings.device}' {how}. Its last words: {words}")

    def _overdue(self, w: Worker) -> Iterator[tuple[Cell, Outcome]]:
        waited = time.monotonic() - w.since
        if not w.ready and waited > START_LIMIT:
            raise self._unusable(w, f"did not start within {START_LIMIT:.0f} s")
        if w.cell is not None and waited > self.limit and not w.pipe.poll():
            yield from self._row(
                w, "hang", f"no end after {self.limit:g} s; the process was killed"
            )

    def _row(self, w: Worker, status: str, how: str) -> Iterator[tuple[Cell, Outcome]]:
        cell = w.cell
        if cell is not None:
            w.job.popleft()
            words = _last_words(w.errors)
            message = f"sample {w.sample[0]}: {how}" + (f"; last words: {words}" if words else "")
            seconds = round(time.monotonic() - w.since, 3)
            yield cell, Outcome(status, samples=int(w.sample[0]), seconds=seconds, message=message)
        self._replace(w)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"the process died of {signal.Signals(-code).name}"
        except ValueError:
            return f"the process died of signal {-code}"
    return f"the process ended with code {code}"


def _last_words(path: str, lines: int = 3) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 4000))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return " / ".join(line.strip() for line in text.splitlines()[-lines:] if line.strip())[:600]
