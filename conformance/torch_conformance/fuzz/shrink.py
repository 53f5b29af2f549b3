# conformance/torch_conformance/fuzz/shrink.py: simplifies the calls that kill a process.
"""Each candidate runs in the pool on the device alone; what still dies is kept."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from torch_conformance.cells.cases import Cell
from torch_conformance.fuzz.calls import SUITE, Call, Plan
from torch_conformance.fuzz.findings import Found
from torch_conformance.run.pool import Pool
from torch_conformance.run.worker import Settings

SIMPLE = ("None", "0", "[]", "made('float32', (2,), 0)")
MOST = 6  # deaths that are simplified
LIMIT = 60.0


def _dying(calls: list[tuple[str, Call]], settings: Settings, options: Namespace) -> set[str]:
    """Those of the calls that kill their process, as text."""
    jobs: list[list[Cell]] = []
    for name, call in calls:
        plan = Plan("", 0, 0, 1, False, 0, options.device_seconds, call.packed())
        jobs.append([Cell(SUITE, name, "any", plan.text())])
    dead = set()
    with Pool(settings, options.workers, LIMIT) as pool:
        for cell, outcome in pool.run(jobs):
            lost: Any = getattr(outcome, "findings", [])
            if outcome.status in ("crash", "hang") or any(f.aspect == "survives" for f in lost):
                dead.add(str(Call.unpacked(Plan.of(cell.aspect).explicit or [])))
    return dead


def _with(call: Call, changes: dict[int, str]) -> Call:
    arguments = [a._replace(text=changes.get(i, a.text)) for i, a in enumerate(call.arguments)]
    return Call(call.target, arguments)


def shrunk(
    found: list[Found], settings: Settings, options: Namespace
) -> Iterator[tuple[Found, str | None]]:
    """Each finding with words on its simplest call that kills, or None if it kills nobody alone."""
    every = [(one, Call.unpacked(one.finding.call)) for one in found]
    alone = _dying([(one.name, call) for one, call in every], settings, options)
    yield from ((one, None) for one, call in every if str(call) not in alone)
    kept = [(one, call) for one, call in every if str(call) in alone]
    chosen = list({one.group(): (one, call) for one, call in kept}.values())[:MOST]
    singles = [
        (one.name, _with(call, {i: text}))
        for one, call in chosen
        for i, a in enumerate(call.arguments) for text in SIMPLE if text != a.text
    ]  # fmt: skip
    dead = _dying(singles, settings, options)
    merged: list[tuple[Found, Call]] = []
    for one, call in chosen:
        changes = {
            i: text for i in range(len(call.arguments)) for text in SIMPLE[::-1]
            if str(_with(call, {i: text})) in dead
        }  # fmt: skip
        merged += [(one, _with(call, changes))] if changes else []
        merged += [(one, _with(call, {i: text})) for i, text in changes.items()]
    together = _dying([(one.name, call) for one, call in merged], settings, options)
    for one, _ in chosen:
        simple = [c for f, c in merged if f is one and str(c) in together]
        yield one, f"simplest: {simple[0]}" if simple else "none of its arguments can be simpler"
