# conformance/torch_conformance/run/worker.py: runs cells in a process of its own, which may die.
"""Messages to the pool: ("hello", device, files of its package's rows), ("refused", text), ("begin", cell),
("done", cell, outcome), ("free",) for another job, ("lost",) when the device no longer works. From it:
cells, or None to end.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import multiprocessing
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from torch_conformance import SetupError
from torch_conformance.cells.cases import Cell


@dataclass
class Settings:
    """What a worker needs to know; travels to it by pickle."""

    device: str
    suites: str  # the module to import, which registers the suites of the cells
    plugin: str | None = None
    expectations: list[Path] = field(default_factory=list)
    fallback: str = "allow"
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    dropped: bool = False  # launches are dropped: see proof.py


def main(settings: Settings, pipe: Connection, sample: Any, errors: str) -> None:
    """The whole life of a worker; sample[0] holds the number of the sample that runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_the_pool()
    gc.enable()
    sink = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(sink, 2)
    os.dup2(sink, 1)  # what an operator prints is not the runner's output
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.update(settings.environment)
    os.environ.setdefault("OMP_NUM_THREADS", str(settings.threads))
    from torch_conformance.run.proof import Proof

    try:
        session = _session(settings, sample)
        run = Proof(session, settings.environment).run if settings.dropped else session.run
    except SetupError as error:
        pipe.send(("refused", str(error)))
        return
    from torch_conformance.device import lookup, package

    options = {"fallback": settings.fallback, "plugin": settings.plugin, "label": settings.label}
    files = package.files(session.device.type)
    pipe.send(("hello", lookup.describe(settings.device, options), files))
    with contextlib.suppress(EOFError, BrokenPipeError):  # the pool is gone
        _serve(session, run, pipe, not settings.dropped)
    os._exit(0)  # a device that hangs at exit holds nobody up


def _end_with_the_pool() -> None:
    """A pool that was killed leaves no worker behind, also where its device hangs (Linux)."""
    pool = multiprocessing.parent_process()
    libc = ctypes.CDLL(None)
    if pool is None or not hasattr(libc, "prctl"):
        return
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != pool.pid:
        os._exit(0)


def _session(settings: Settings, sample: Any) -> Any:
    import torch

    from torch_conformance.cells.expectations import Expectations
    from torch_conformance.device import lookup

    torch.set_num_threads(settings.threads)
    plugin = lookup.load_plugin(settings.plugin)
    lookup.check(settings.device, settings.plugin)
    importlib.import_module(settings.suites)
    from torch_conformance.cells.session import Session

    def progress(number: int) -> None:
        sample[0] = number

    kind = torch.device(settings.device).type
    return Session(
        settings.device,
        plugin=plugin,
        expectations=Expectations.built_in(kind, settings.expectations),
        fallback=settings.fallback,
        progress=progress,
    )


def _serve(session: Any, run: Any, pipe: Connection, watched: bool) -> None:
    """watched: after an error the device is asked whether it still works."""
    works = watched and session.usable()
    while True:
        pipe.send(("free",))
        job: list[Cell] | None = pipe.recv()
        if job is None:
            return
        for cell in job:
            pipe.send(("begin", cell))
            random.seed(0)
            _seed_numpy()
            outcome = run(cell)
            lost = works and outcome.status in ("fail", "error", "xfail") and not session.usable()
            if lost:
                outcome.message += " (the device did not work any more; its process was replaced)"
            pipe.send(("done", cell, outcome))
            if lost:
                pipe.send(("lost",))
                return


def _seed_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
