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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import torch  # noqa: E402

import chart  # noqa: E402
import compile_worker  # noqa: E402
import report  # noqa: E402
from compile_cases import CASES, Case  # noqa: E402
from pairs import Row, ratio_row  # noqa: E402
from record import Side  # noqa: E402

OTHERS = ("eager", "inductor", "frozen")
OURS = ("graft eager", "graft compile", "optimize")
PAGE = HERE.parent / "docs" / "compile-speed.md"
BACK_END_GOAL, WHOLE_GOAL, SECOND_GOAL, LAUNCH_GOAL = 0.3, 0.6, 0.5, 0.5


def measured(case: Case, rows: list[Row], samples: dict[str, list[float]],
             facts: dict[str, dict[str, float]], opencl: bool) -> None:  # fmt: skip
    """Adds the rows that one case gives."""
    ours = "graft compile" if case.training else "optimize"
    references = ("graft eager",) if opencl else OTHERS
    known = [kind for kind in references if kind in samples]
    if ours not in samples or not known:
        return
    best = min(known, key=lambda kind: sorted(samples[kind])[len(samples[kind]) // 2])
    goal = case.opencl or case.goal if opencl else case.goal
    rows.append(ratio_row(f"{case.name} / {best}", goal, samples[ours], samples[best]))
    if case.overhead is not None:
        micro = sorted(1e6 * one for one in samples[ours])
        rows.append(Row(f"{case.name}: a call", case.overhead, micro[len(micro) // 2], micro[0],
                        micro[-1], micro[0], 1e6 * min(samples[best]), "µs"))  # fmt: skip
    rows += counted(case, facts, ours)


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
    if eager is not None:
        for key, goal in (("launches", LAUNCH_GOAL), ("peak", 1.0)):
            row(key, goal, made[key] / max(eager[key], 1), made[key], eager[key], "bytes")
    left = made["eager nodes"] + made["refused"]
    row("nodes left eager", 0, left, left, 0, "bytes")
    if case.dynamic:
        row("graphs", 1, made["graphs"], made["graphs"], 1, "bytes")
    return found


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


def run_case(case: Case, options: argparse.Namespace, rows: list[Row]) -> dict[str, Any]:
    """Measures a case on all sides. Returns what was seen, for the JSON."""
    kinds = [*OURS] if options.opencl else [*OTHERS, *OURS]
    if case.training and "frozen" in kinds:
        kinds.remove("frozen")
    ours = "graft compile" if case.training else "optimize"
    sides = Sides(case, options.threads, options.limit, options.opencl)
    facts: dict[str, dict[str, float]] = {}
    failures: dict[str, str] = {}
    samples: dict[str, list[float]] = {}
    with ExitStack() as stack:
        for kind in kinds:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            try:
                facts[kind] = sides.start(stack, kind, kind, folder)
                print(f"  {kind}: first call {facts[kind]['first']:.1f} s", flush=True)
                if kind == ours:
                    facts["second"] = sides.start(stack, kind, "second", folder)
            except Exception as error:  # one side that fails leaves the others their row
                failures[kind] = str(error).splitlines()[0] if str(error) else repr(error)
                print(f"  {kind} failed: {failures[kind]}", flush=True)
        ready = [kind for kind in kinds if kind in facts and kind not in failures]
        try:
            for turn in range(options.pairs):
                taken = {kind: sides.call(kind, compile_worker.sample)
                         for kind in (ready if turn % 2 else reversed(ready))}  # fmt: skip
                for kind, seconds in taken.items():
                    samples.setdefault(kind, []).append(seconds)
        except Exception as error:
            failures["sampling"] = str(error) or repr(error)
            print(f"  sampling stopped: {failures['sampling']}", flush=True)
    measured(case, rows, samples, facts, options.opencl)
    return {"seconds": samples, "facts": facts, "failures": failures}


def publish(rows: list[Row], facts: dict[str, Any]) -> None:
    table = report.markdown(rows, facts).replace("CPU (min)", "beside (min)")
    PAGE.write_text(report.put_between(PAGE.read_text(), table))
    chart.draw(rows, PAGE.with_suffix(".png"), "the fastest other's")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("pattern", nargs="?", default="", help="regular expression on case names")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--limit", type=float, default=900, help="seconds for each case")
    parser.add_argument("--opencl", action="store_true", help="beside the OpenCL driver's eager")
    parser.add_argument("--publish", action="store_true", help="put table and chart into docs/")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    seen: dict[str, Any] = {}
    out = options.out or HERE / ("compile-opencl.json" if options.opencl else "compile.json")
    facts = report.machine(options.threads, "graft", "cpu")
    wanted = [case for case in CASES.values() if re.search(options.pattern, case.name)]
    for case in wanted:
        if options.opencl and case.opencl is None and not options.pattern:
            continue
        print(case.name, flush=True)
        before = len(rows)
        seen[case.name] = run_case(case, options, rows)
        for row in rows[before:]:
            print("  " + "  ".join(report.cells(row)), flush=True)
        report.write_json(out, rows, facts)
        written = json.loads(out.read_text()) | {"cases": seen}
        out.write_text(json.dumps(written, indent=1) + "\n")
    if options.publish and not options.opencl:
        publish(rows, facts)
    print(report.markdown(rows, facts).splitlines()[-1])
    return int(any(one["failures"] for one in seen.values()))


if __name__ == "__main__":
    raise SystemExit(main())
