"""Times compilers on whole models: torch's own on the CPU beside Graft's, all in turn.

Each side has a process and empty caches of its own for each case. Rows are kept as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from concurrent.futures import TimeoutError as Late
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import chart  # noqa: E402
import compile_worker  # noqa: E402
import medians  # noqa: E402
import report  # noqa: E402
from compile_cases import CASES, Case  # noqa: E402
from medians import published  # noqa: E402
from pairs import Row, median_interval, ratio_row  # noqa: E402
from record import Side  # noqa: E402
from table import command_line  # noqa: E402

OTHERS = ("eager", "inductor", "frozen")
OURS = ("graft eager", "graft compile", "optimize")
PAGE = HERE.parent / "docs/measurements/compile-speed.md"
BACK_END_GOAL, WHOLE_GOAL, SECOND_GOAL, LAUNCH_GOAL, MEAN_GOAL = 0.3, 0.6, 0.5, 0.5, 0.95


def measured(case: Case, samples: dict[str, list[float]], facts: dict[str, dict[str, float]],
             opencl: bool) -> list[Row]:  # fmt: skip
    """The rows that one case gives."""
    ours = "graft compile" if case.training else "optimize"
    known = [kind for kind in (("graft eager",) if opencl else OTHERS) if kind in samples]
    if ours not in samples or not known:
        return []
    best = min(known, key=lambda kind: median(samples[kind]))
    if case.overhead is not None:
        micro = [1e6 * one for one in samples[ours]]
        low, high = median_interval(micro)
        speed = Row(f"{case.name}: a call", case.overhead, median(micro), low, high, min(micro),
                    1e6 * min(samples[best]), "µs")  # fmt: skip
    else:
        goal = case.opencl or case.goal if opencl else case.goal
        speed = ratio_row(f"{case.name} / {best}", goal, samples[ours], samples[best])
    return [speed, *counted(case, facts, ours)]


def counted(case: Case, facts: dict[str, dict[str, float]], ours: str) -> list[Row]:
    """Rows of what compiling took and of what a call takes beside seconds."""
    found, made = [], facts[ours]

    def row(what: str, goal: float, value: float, ours: float, theirs: float, unit: str) -> None:
        found.append(Row(f"{case.name}: {what}", goal, value, value, value, ours, theirs, unit))

    theirs = facts.get("inductor")
    if theirs is not None:
        for what, key, goal in (("back end", "back end", BACK_END_GOAL),
                                ("compiling", "first", WHOLE_GOAL)):  # fmt: skip
            row(what, goal, made[key] / theirs[key], made[key], theirs[key], "compiling")
    if "second" in facts:
        again = facts["second"]["back end"]
        row("back end, second process", SECOND_GOAL, again, again, made["back end"], "s")
    eager = facts.get("graft eager")
    if eager is not None and case.overhead is None:
        for key, goal in (("launches", LAUNCH_GOAL), ("kernels", 1.0), ("peak", 1.0)):
            row(key, goal, made[key] / eager[key], made[key], eager[key], key)
    left = made["eager nodes"] + made["refused"]
    row("nodes left eager", 0, left, left, 0, "count")
    if case.dynamic:
        row("graphs", 1, made["graphs"], made["graphs"], 1, "count")
    return found


def mean_row(rows: list[Row]) -> Row:
    mean, count = medians.mean_ratio(rows), sum(row.unit == "ratio" for row in rows)
    return Row(f"geometric mean of {count} models", MEAN_GOAL, mean, mean, mean, mean, 1.0, "mean")


def merged(kept: list[medians.Median], fresh: list[medians.Median]) -> list[medians.Median]:
    """The medians in the order of the cases, then their mean; a case that is fresh has those alone."""
    again = {case_of(one.row) for one in fresh}
    both = [*(one for one in kept if case_of(one.row) not in again), *fresh]
    rows = [one for name in CASES for one in both if case_of(one.row) == name]
    return [*rows, replace(fresh[-1], row=mean_row([one.row for one in rows]))]


def case_of(row: Row) -> str:
    """The name of a row's case: "model / side", "model: what"."""
    return re.split(r" / |: ", row.name)[0]


class Sides:
    """The processes of one case, killed when its time is over."""

    def __init__(self, case: Case, threads: int, seconds: float, opencl: bool) -> None:
        self.case, self.threads, self.end = case, threads, time.monotonic() + seconds
        self.environment = {"GRAFT_DEVICES": "opencl"} if opencl else {}
        self.sides: dict[str, Side] = {}

    def call(self, kind: str, *arguments: Any) -> Any:
        side = self.sides[kind]
        left = max(self.end - time.monotonic(), 0.01)
        try:
            return side.begin(*arguments).result(left)
        except Late:
            os.kill(side.process, signal.SIGKILL)
            raise TimeoutError("the row's time is over") from None

    def start(self, stack: ExitStack, kind: str, name: str, folder: str) -> dict[str, float]:
        device = "cpu" if kind in OTHERS else "graft"
        caches = {
            "GRAFT_CACHE_DIR": f"{folder}/graft",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch",
        }
        self.sides[name] = stack.enter_context(Side(device, self.environment | caches))
        found: dict[str, float] = self.call(
            name, compile_worker.prepare, kind, self.case.name, self.threads
        )
        return found


def started(sides: Sides, stack: ExitStack, kinds: list[str],
            failures: dict[str, str]) -> dict[str, dict[str, float]]:  # fmt: skip
    """What each side's first call showed; a side that fails leaves the others their row."""
    facts: dict[str, dict[str, float]] = {}
    ours = "graft compile" if sides.case.training else "optimize"
    for kind in kinds:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for name in (kind, "second") if kind == ours else (kind,):
            try:
                facts[name] = sides.start(stack, kind, name, folder)
                print(f"  {name}: first call {facts[name]['first']:.1f} s", flush=True)
            except Exception as error:
                failures[name] = (str(error) or repr(error)).splitlines()[0]
                print(f"  {name} failed: {failures[name]}", flush=True)
                break
    return facts


def run_case(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Measures a case on all sides. Returns its rows and what was seen, for the JSON."""
    kinds = [*OURS] if options.opencl else [*OTHERS, *OURS]
    if case.training and "frozen" in kinds:
        kinds.remove("frozen")
    sides = Sides(case, options.threads, options.limit, options.opencl)
    failures: dict[str, str] = {}
    samples: dict[str, list[float]] = {}
    with ExitStack() as stack:
        facts = started(sides, stack, kinds, failures)
        ready = [kind for kind in kinds if kind in facts]
        try:
            for turn in range(options.pairs):
                taken = {kind: sides.call(kind, compile_worker.sample)
                         for kind in (ready if turn % 2 else reversed(ready))}  # fmt: skip
                for kind, seconds in taken.items():
                    samples.setdefault(kind, []).append(seconds)
        except Exception as error:
            failures["sampling"] = str(error) or repr(error)
            print(f"  sampling stopped: {failures['sampling']}", flush=True)
    rows = measured(case, samples, facts, options.opencl)
    return {"rows": [asdict(row) for row in rows], "seconds": samples, "facts": facts,
            "failures": failures}  # fmt: skip


def shown(kind: str) -> str:
    return report.markdown(*published(kind)).replace("CPU (min)", "beside (min)")


def publish(kind: str) -> None:
    mark = kind.replace("compile", "bench")
    PAGE.write_text(report.put_between(PAGE.read_text(), shown(kind), mark))
    if kind == "compile":
        chart.draw(published(kind)[0], PAGE.with_suffix(".svg"), "the fastest other's")


def arguments() -> argparse.Namespace:
    parser = command_line("Times compiled models beside the fastest other way.", "case names")
    parser.set_defaults(pairs=11)
    parser.add_argument("--limit", type=float, default=900, help="seconds for each case")
    parser.add_argument("--opencl", action="store_true", help="beside the OpenCL driver's eager")
    parser.add_argument("--out", type=Path, help="JSON of what was seen; default: in build/bench")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    kind = "compile-opencl" if options.opencl else "compile"
    if options.from_medians:
        publish(kind)
        return 0
    out = options.out or medians.RAW / f"{kind}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    cases: dict[str, Any] = {}
    facts = report.machine(options.threads, "graft", "cpu")
    failed = False
    for case in CASES.values():
        if not re.search(options.pattern, case.name):
            continue
        if options.opencl and case.opencl is None and not options.pattern:
            continue
        print(case.name, flush=True)
        cases[case.name] = seen = run_case(case, options)
        failed |= bool(seen["failures"])
        for row in seen["rows"]:
            print("  " + "  ".join(report.cells(Row(**row))), flush=True)
        out.write_text(json.dumps({"machine": facts, "cases": cases}, indent=1) + "\n")
    rows = [Row(**row) for seen in cases.values() for row in seen["rows"]]
    fresh = medians.stamped(rows, facts)
    if options.publish and fresh:
        medians.write(kind, merged(medians.read_all().get(kind, []), fresh))
        publish(kind)
    if fresh:
        print(report.summary([*rows, mean_row(rows)], medians.facts(fresh, "graft", "cpu")))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
