# conformance/torch_conformance/run/proving.py: runs the cells that passed again, with the device's launches dropped.
"""The device's package says in which environments its launches are dropped: [[dropped_launches]] in
its expectations.toml, a table of variables for each. A cell is native if it comes out wrong in all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from torch_conformance import SetupError
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import dropped_launches
from torch_conformance.run.pool import Pool
from torch_conformance.run.progress import Progress
from torch_conformance.run.state import Run

NEEDS = (
    "The proof needs a device that can be told to drop its kernel launches while copies and fills "
    "go on, and whose package says how: [[dropped_launches]] in its expectations.toml, or in a file "
    "given by --expectations. Without it a run still counts what fell back to the CPU: leave "
    "--prove-native out and read each cell's fallbacks, or make them errors with --fallback forbid. "
    "Whether a driver's own kernel or the processor behind it computed a result stays open"
)


def check(run: Run) -> None:
    """Raises SetupError where the device cannot give the proof; workers of their own find out."""
    run.dropping = _environments(run)
    if not run.dropping:
        raise SetupError(
            f"--prove-native: the device '{run.options.device}' does not drop its launches: no "
            f"[[dropped_launches]] is stated for it. {NEEDS}"
        )
    try:
        _start(run, run.dropping[0])
    except SetupError as error:
        raise SetupError(f"{error}. {NEEDS}") from error


def _environments(run: Run) -> list[dict[str, str]]:
    """A worker is asked, since the device may be unknown to this process."""
    return dropped_launches([*_start(run, {}).files, *run.settings().expectations])


def _start(run: Run, environment: dict[str, str]) -> Pool:
    """A pool whose one worker has opened the device and ended again."""
    settings = dataclasses.replace(
        run.settings(), environment=environment, dropped=bool(environment)
    )
    o = run.options
    with Pool(settings, 1, o.time_limit, o.start) as pool:
        for _ in pool.run([[]]):
            pass
    return pool


def unproven(run: Run, cells: list[Cell]) -> list[Cell]:
    found = run.journal.cells
    return [c for c in cells if c in found and found[c]["status"] == "pass"
            and found[c]["native"] is None]  # fmt: skip


def prove(run: Run, cells: list[Cell], until: float | None) -> bool:
    """Sets "native" of the cells that passed; whether there was time for all of them."""
    passed = unproven(run, cells)
    progress = Progress(len(run.dropping) * len(passed), what="proofs")
    found = [dict(_verdicts(run, one, passed, until, progress)) for one in run.dropping]
    for cell in set(passed).intersection(*found):
        record = dict(run.journal.cells[cell])
        record["native"] = verdict([one[cell] for one in found], record["fallbacks"])
        run.journal.add(record)
    progress.end()
    return all(len(one) == len(passed) for one in found)


def _verdicts(
    run: Run, environment: dict[str, str], cells: list[Cell], until: float | None, told: Progress
) -> Iterator[tuple[Cell, bool | None]]:
    settings = dataclasses.replace(run.settings(), environment=environment, dropped=True)
    o = run.options
    with Pool(settings, o.workers, o.time_limit, o.start) as pool:
        for cell, outcome in pool.run(cases.group(cells), until):
            told.finished(cell, False)
            yield cell, outcome.native


def verdict(found: list[bool | None], fallbacks: dict[str, int]) -> bool | None:
    """False when anything came out right without the device, or a fallback was counted."""
    if fallbacks or False in found:
        return False
    return True if True in found else None
