# conformance/torch_conformance/fuzz/command.py: the command "fuzz": hostile calls of operators, on the device and on the CPU.
"""Every overload with a kernel for the device and every entry of op_db is called, mostly with one wrong argument.

The runner's processes contain crashes and hangs; after one, the next call goes on in a new process.
"""

from __future__ import annotations

import argparse
import collections
import functools
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_conformance import SetupError
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.cells.outcome import Outcome
from torch_conformance.device import lookup
from torch_conformance.fuzz import entries, judge
from torch_conformance.fuzz.calls import SUITE, Call, Plan, subject, subjects
from torch_conformance.fuzz.findings import ASPECTS, TOLD, Finding, Found, FuzzOutcome
from torch_conformance.fuzz.judge import placed
from torch_conformance.fuzz.shrink import shrunk
from torch_conformance.report import results, schema
from torch_conformance.run.pool import Pool, start_method
from torch_conformance.run.progress import Progress
from torch_conformance.run.worker import Settings

CALLS = 50_000
DEATHS = 4  # of a subject, then the rest of its calls is left out
HANG = 2  # deaths that a hang counts for
SHOWN = 5  # calls printed of a group
EXAMPLES = 60  # groups named on the terminal


@dataclass(eq=False)
class Fuzz:
    """One run: what it works on and what it has found."""

    options: argparse.Namespace
    names: list[str]
    corpus: str
    found: list[Found] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    calls: collections.Counter[str] = field(default_factory=collections.Counter)
    deaths: collections.Counter[str] = field(default_factory=collections.Counter)
    skipped: dict[str, str] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)

    @property
    def each(self) -> int:
        """Calls of each subject."""
        return max(self.options.least, -(-self.options.calls // len(self.names)))

    def settings(self) -> Settings:
        o = self.options
        rows = [Path(p).resolve() for p in o.expectations]
        return Settings(o.device, judge.__name__, o.plugin, rows, label=o.label)

    @property
    def own(self) -> bool:
        """Whether the device's kernels are the CPU's."""
        return bool(self.options.device.split(":")[0] == "cpu")

    @functools.cached_property
    def rows(self) -> Expectations:
        kind = self.options.device.split(":")[0]
        return Expectations.built_in(kind, [Path(p) for p in self.options.expectations])

    def jobs(self) -> list[list[Cell]]:
        o, rows, jobs = self.options, self.rows, []
        first, last = (0, self.each) if o.call is None else (o.call, o.call + 1)
        for name in self.names:
            alone = rows.device_alone(Cell(SUITE, name, "any", ""))
            if alone and self.own:
                self.skipped[name] = alone
                continue
            plan = Plan(self.corpus, o.seed, first, last, not alone, 0, o.device_seconds)
            jobs.append([Cell(SUITE, name, "any", plan.text())])
        return jobs

    def execute(self) -> None:
        jobs = self.jobs()
        progress = Progress(len(jobs), what="subjects")
        pending = collections.Counter(job[0].entry for job in jobs)
        with Pool(self.settings(), self.options.workers, self.options.time_limit) as pool:
            for cell, outcome in pool.run(jobs):
                self.device = pool.device or self.device
                red = len(self.found)
                rest = self.took(cell, outcome)
                pool.jobs.extend([[cell._replace(aspect=p.text())] for p in rest])
                self.judge(red)
                pending[cell.entry] += len(rest) - 1
                if not pending[cell.entry]:
                    progress.finished(Cell(SUITE, cell.entry, "", ""), len(self.found) > red)
        progress.end()

    def took(self, cell: Cell, outcome: Outcome) -> list[Plan]:
        """Notes what a cell gave; returns what is left of its plan."""
        plan = Plan.of(cell.aspect)
        if isinstance(outcome, FuzzOutcome):
            self.found += [Found(cell.entry, finding) for finding in outcome.findings]
            self.counts.update(outcome.counts)
            self.calls[cell.entry] += outcome.next - plan.first
            return [plan._replace(first=outcome.next)] if outcome.next < plan.last else []
        if outcome.status == "skip":
            self.skipped[cell.entry] = outcome.reason
            return []
        if outcome.status not in ("crash", "hang"):
            raise SetupError(f"the fuzz itself fails at {cell.entry}: {outcome.message}")
        return self.died(cell, plan, outcome)

    def died(self, cell: Cell, plan: Plan, outcome: Outcome) -> list[Plan]:
        number, attempt, there = placed(outcome.samples)
        self.calls[cell.entry] += number + 1 - plan.first
        how = re.sub(r"^sample \d+: ", "", outcome.message)
        hangs = outcome.status == "hang" or "SIGALRM" in how or "SIGPROF" in how
        rest = [plan._replace(first=number + 1, attempt=0)] if number + 1 < plan.last else []
        self.deaths[cell.entry] += HANG if hangs else 1
        if rest and self.deaths[cell.entry] >= DEATHS:
            self.counts["given up after deaths"] += plan.last - number - 1
            rest = []
        if there or not plan.at_home:
            call = list(plan.draws(subject(cell.entry), number))[attempt]
            status = "hang" if hangs else "crash"
            how = f"no end after {plan.seconds:g} s" if hangs else how
            self.found.append(Found(cell.entry, Finding("survives", status, how, number, call.packed())))  # fmt: skip
            return rest
        self.counts["the CPU itself hangs" if hangs else "the CPU itself dies"] += 1
        alone = plan._replace(first=number, last=number + 1, at_home=False, attempt=attempt)
        return rest if hangs or self.own else [alone, *rest]

    def judge(self, first: int) -> None:
        """Gives the findings from `first` on their reasons, where a row lists them."""
        rows = self.rows
        for one in self.found[first:]:
            cell = Cell(SUITE, one.name, "any", one.finding.aspect)
            one.reason = rows.excuse(cell, one.finding.message) or ""

    def shrink(self) -> None:
        """Runs the calls that kill again, alone, and simplifies some of them."""
        deaths = [f for f in self.found if f.finding.aspect == "survives" and f.red]
        if not deaths or self.options.no_shrink:
            return
        for one, simplest in shrunk(deaths, self.settings(), self.options):
            note = (
                simplest or "alone, in a new process, it does not die: an earlier call is at fault"
            )
            one.finding = one.finding._replace(message=f"{one.finding.message}; {note}")
            if simplest is None:
                one.finding = one.finding._replace(aspect="after")

    def command(self, one: Found) -> str:
        o = self.options
        plugin = f" --plugin {o.plugin}" if o.plugin else ""
        return (f"torch-conformance fuzz --device {o.device}{plugin} --seed {o.seed} "
                f"--ops '{one.name}' --call {one.finding.number}")  # fmt: skip

    def cells(self) -> list[dict[str, Any]]:
        """A cell for each subject and aspect, with its worst finding."""
        order = [status.name for status in schema.STATUSES]
        every: dict[tuple[str, str], list[Found]] = {}
        for one in self.found:
            every.setdefault((one.name, one.finding.aspect), []).append(one)
        made = []
        for name in self.names:
            for aspect in ASPECTS:
                mine = every.get((name, aspect), [])
                mine.sort(key=lambda f: order.index(f.finding.status if f.red else "xfail"))
                status = "skip" if name in self.skipped else "pass"
                outcome = Outcome(status, self.calls[name], reason=self.skipped.get(name, ""))
                if mine:
                    worst = mine[0]
                    outcome.status = worst.finding.status if worst.red else "xfail"
                    outcome.reason = worst.reason
                    outcome.message = f"{len(mine)} calls; first: {self.text(worst)}"[:2000]
                made.append(outcome.record(Cell(SUITE, name, "any", aspect)))
        return made

    def text(self, one: Found) -> str:
        return f"{one.finding.message}\n  {Call.unpacked(one.finding.call)}\n  {self.command(one)}"

    def groups(self) -> list[tuple[tuple[str, str], list[Found]]]:
        """The groups of findings that no row lists, the gravest aspect first."""
        grouped: dict[tuple[str, str], list[Found]] = {}
        for one in self.found:
            if not one.reason:
                grouped.setdefault(one.group(), []).append(one)
        rank = [*ASPECTS, *TOLD]
        return sorted(grouped.items(), key=lambda g: (rank.index(g[0][0]), -len(g[1])))

    def write(self, folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        found = {
            "schema": schema.SCHEMA,
            "device": self.device or {"name": self.options.device, "label": self.options.device},
            "started": results.now(),
            "seconds": round(time.monotonic() - self.start, 3),
            "complete": True,
            "shard": [1, 1],
            "fuzz": {"seed": self.options.seed, "calls": sum(self.calls.values()),
                     "counts": dict(self.counts)},
            "cells": self.cells(),
        }  # fmt: skip
        results.write(found, folder, self.options.page)
        lines = ["from torch_conformance.fuzz.values import environment",
                 f'globals().update(environment(torch.device("{self.options.device}")))', ""]  # fmt: skip
        for (aspect, _), mine in self.groups():
            title = ASPECTS.get(aspect) or TOLD[aspect]
            lines.append(f"== {aspect}: {title}: {len(mine)} calls of "
                         f"{', '.join(sorted({f.name for f in mine})[:30])}")  # fmt: skip
            lines += [self.text(one) for one in mine[:SHOWN]] + [""]
        (folder / "findings.txt").write_text("\n".join(lines))
        return found


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="torch-conformance fuzz",
        description="Calls operators of a torch device with hostile arguments and compares it with the CPU.",
    )
    add = p.add_argument
    add("--device", default="cpu", help="the device under test (cpu)")
    add("--plugin", metavar="MODULE", help="as for run")
    add("--seed", type=int, default=0, help="of all draws (0)")
    add("--calls", type=int, default=CALLS, help=f"of all subjects together ({CALLS})")
    add("--least", type=int, default=20, help="calls of each subject (20)")
    add("--call", type=int, metavar="NUMBER", help="this call alone, of each chosen subject")
    add("--ops", type=lambda text: text.split(","), metavar="PATTERNS",
        help="subjects, as 'aten::add.*,nn.functional.*' (all)")  # fmt: skip
    add("--aspects", type=lambda text: text.split(","), default=list(ASPECTS),
        help=f"what makes a run red, of {', '.join(ASPECTS)} (all)")  # fmt: skip
    add("--workers", type=int, default=os.cpu_count() or 1, help="processes (one a core)")
    add("--time-limit", type=float, default=600.0, metavar="S", help="of all calls of a subject")
    add("--device-seconds", type=float, default=40.0, metavar="S", help="of a call: a hang (40)")
    add("--expectations", action="append", default=[], metavar="FILE", help="as for run")
    add("--out", metavar="FOLDER", help="for the files (fuzz-<device>)")
    add("--label", help="how the report calls the device")
    add("--no-page", dest="page", action="store_false", help="writes no report.html")
    add("--no-shrink", action="store_true", help="does not simplify the calls that kill")
    add("--list", action="store_true", help="prints the subjects and runs nothing")
    return p


def _corpus(device: str) -> str:
    """Records op_db in a process of its own."""
    folder = tempfile.mkdtemp(prefix="torch-conformance-fuzz-")
    path = os.path.join(folder, "corpus.json")
    context: Any = multiprocessing.get_context(start_method(device))
    process = context.Process(target=entries.write_corpus, args=(path,))
    process.start()
    process.join()
    if process.exitcode or not os.path.exists(path):
        raise SetupError(f"op_db could not be recorded: the process ended with {process.exitcode}")
    return path


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    lookup.load_plugin(options.plugin)
    names = subjects(options.device, options.ops)
    if not names:
        raise SetupError(f"no subject matches {options.ops}; --list prints all of them")
    if options.list:
        print("\n".join(names))
        return 0
    for path in options.expectations:
        Expectations.built_in(options.device, [Path(path)])  # a broken file ends the run here
    corpus = _corpus(options.device)
    try:
        work = Fuzz(options, names, corpus)
        print(f"seed {options.seed}: {work.each} calls of each of {len(names)} subjects")
        work.execute()
        work.shrink()
        folder = Path(options.out or f"fuzz-{options.device.replace(':', '')}")
        work.write(folder)
    finally:
        shutil.rmtree(Path(corpus).parent, ignore_errors=True)
    return summarize(work, folder)


def summarize(work: Fuzz, folder: Path) -> int:
    red = [(group, mine) for group, mine in work.groups() if mine[0].red]
    for (aspect, what), mine in red[:EXAMPLES]:
        print(
            f"{mine[0].finding.status:5} {aspect}, {len(mine)} calls: {what}\n  {work.text(mine[0])}"
        )
    if len(red) > EXAMPLES:
        print(f"... and {len(red) - EXAMPLES} more groups")
    listed = sum(bool(one.reason) for one in work.found)
    counts = ", ".join(f"{n} {what}" for what, n in sorted(work.counts.items()))
    print(f"{sum(work.calls.values())} calls of {len(work.names) - len(work.skipped)} subjects, seed "
          f"{work.options.seed}, in {time.monotonic() - work.start:.0f} s: {counts}")  # fmt: skip
    print(f"{len(red)} groups of findings, {listed} calls listed with a reason, "
          f"{len(work.skipped)} subjects skipped; files in {folder}")  # fmt: skip
    return 1 if any(group[0] in work.options.aspects for group, _ in red) else 0
