"""Measures a device beside torch's CPU in interleaved pairs and writes a table with goals.

Each side works in a process of its own, asleep while the other is timed: two OpenMP masters in one
process would slow both down.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import psutil  # noqa: E402
import torch  # noqa: E402

import cases  # noqa: E402
import chart  # noqa: E402
import distributed_rows  # noqa: E402
import kernel_cases  # noqa: E402
import loading  # noqa: E402
import measurements  # noqa: E402
import medians  # noqa: E402
import opencl_cases  # noqa: E402
import opencl_rows  # noqa: E402
import report  # noqa: E402
import ve_rows  # noqa: E402
import worker  # noqa: E402
from pairs import Row, Sampler, difference_row, interleave, ratio_row  # noqa: E402
from record import Side, default_device  # noqa: E402

Wanted = Callable[[str], object]
IMPORT_GOAL = 0.15
# The page that shows a table.
TABLES = {
    "all": "docs/measurements/measurements.md",
    "kernels": "docs/measurements/kernel-speed.md",
    "distributed": "docs/measurements/distributed-speed.md",
    "opencl": "docs/measurements/opencl-speed.md",
    "ve": "docs/measurements/ve-speed.md",
}
SETTINGS = {"opencl": opencl_rows.DEVICES, "ve": ve_rows.DEVICES}
PROFILED, PROFILER_ROW, PROFILER_GOAL = "digits training epoch", "profiling the digits training", 10


class Bench:
    """Two sides and how often to sample them."""

    def __init__(self, device: Side, against: Side, threads: int, quick: bool) -> None:
        self.device, self.against, self.threads, self.quick = device, against, threads, quick

    def _burnt(self, side: Side, other: Side) -> tuple[Sampler, list[float]]:
        """A sampler of a side that also notes which share of a core the idle one burns."""
        shares: list[float] = []
        idle = psutil.Process(other.process)

        def take() -> float:
            time.sleep(0.01)
            before, start = sum(idle.cpu_times()[:2]), time.perf_counter()
            seconds: float = side.call(worker.sample)
            wall = time.perf_counter() - start
            shares.append((sum(idle.cpu_times()[:2]) - before) / wall)
            return seconds

        return take, shares

    def pairs(self, name: str, count: int) -> tuple[list[float], list[float], float]:
        for side in (self.device, self.against):
            side.call(worker.prepare, name, self.threads)
        ours, burnt = self._burnt(self.device, self.against)
        theirs, also = self._burnt(self.against, self.device)
        samples = interleave(3 if self.quick else count, ours, theirs)
        return *samples, sum(burnt + also) / len(burnt + also)

    def case(self, case: cases.Case) -> Row:
        ours, theirs, idle = self.pairs(case.name, case.pairs)
        row = ratio_row(case.name, case.goal, ours, theirs)
        row.idle = idle
        return row

    def memory(self, name: str, goal: float) -> Row:
        peaks = []
        for device in (self.device.device, self.against.device):
            with Side(device) as side:
                peaks.append([side.call(worker.peak_memory, name, self.threads) / 2**20])
        row = ratio_row(f"{name}: peak memory", goal, *peaks)
        row.unit = "MiB"
        return row

    def profiler(self) -> Row:
        """What tracing the device adds to the profiler's overhead, in points of the plain time."""
        self.device.call(worker.prepare, PROFILED, self.threads)
        shares: dict[str, list[float]] = {"both": [], "cpu": []}
        self.device.call(worker.profiled, ["CPU", "PrivateUse1"])  # the first one starts Kineto
        for _ in range(3 if self.quick else 9):
            plain = self.device.call(worker.profiled, [])
            for kind, activities in (("cpu", ["CPU"]), ("both", ["CPU", "PrivateUse1"])):
                shares[kind].append(100 * self.device.call(worker.profiled, activities) / plain)
        return difference_row(PROFILER_ROW, PROFILER_GOAL, "points", shares["both"], shares["cpu"])


def import_row(quick: bool) -> Row:
    """How much longer `import torch` takes with the autoload of installed devices."""

    def timed(autoload: str) -> Sampler:
        environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}

        def take() -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True)
            return time.perf_counter() - start

        take()
        return take

    samples = interleave(3 if quick else 9, timed("1"), timed("0"))
    return difference_row("import torch", IMPORT_GOAL, "s", *samples)


def breakdown(bench: Bench) -> str:
    """The parts of a one-element call on both sides, ns per call."""
    lines = [f"{'one element':<26} {'device':>8} {'CPU':>8} {'more':>8}   ns per call, min"]
    for name in cases.LAYERS:
        ours, theirs, _ = bench.pairs(f"layer {name}", 7)
        a, b = 1e9 * min(ours), 1e9 * min(theirs)
        lines.append(f"{name:<26} {a:8.0f} {b:8.0f} {a - b:8.0f}")
    return "\n".join(lines)


def measure_cases(
    bench: Bench, table: dict[str, cases.Case], wanted: Wanted, show: Callable[[Row], None]
) -> None:
    """Shows a row for every wanted case of a table."""
    for case in table.values():
        if wanted(case.name):
            show(bench.case(case))


def measure_rest(bench: Bench, wanted: Wanted, show: Callable[[Row], None]) -> None:
    """Shows the wanted rows that are no time of a case: peak memory and the import."""
    for name, goal in cases.MEMORY.items():
        if wanted(f"{name}: peak memory"):
            show(bench.memory(name, goal))
    if wanted(PROFILER_ROW):
        show(bench.profiler())
    if wanted("import torch"):
        show(import_row(bench.quick))


def published(kind: str) -> tuple[list[Row], dict[str, Any]]:
    """The rows that the table of medians has of a kind, and where they were measured."""
    return medians.published(kind, ve_rows.SIDES if kind == "ve" else ("graft", "cpu"))


def publish(kind: str) -> None:
    """Puts the medians of a kind into its page, and the picture beside it."""
    rows, facts = published(kind)
    if kind == "all":
        measurements.publish(rows, facts)
        return
    page = HERE.parent / TABLES[kind]
    page.write_text(report.put_between(page.read_text(), report.markdown(rows, facts)))
    if kind == "kernels":
        chart.draw_families(rows, page.with_suffix(".svg"))


def measure(bench: Bench, kind: str, wanted: Wanted, show: Callable[[Row], None]) -> None:
    """Shows the wanted rows of a table."""
    if kind == "kernels":
        measure_cases(bench, kernel_cases.KERNELS, wanted, show)
    elif kind == "distributed":
        distributed_rows.measure(bench.device, bench.quick, wanted, show)
        measure_cases(bench, loading.LOADING, wanted, show)
    elif kind == "opencl":
        measure_cases(bench, opencl_cases.OPENCL, wanted, show)
        opencl_rows.measure(bench.device, bench.against, bench.threads, bench.quick, wanted, show)
    elif kind == "ve":
        chosen = {
            name: replace(cases.CASES[name], goal=ve_rows.COMPILED_GOAL) for name in ve_rows.EAGER
        }
        measure_cases(bench, chosen, wanted, show)
        ve_rows.measure(bench.pairs, bench.threads, bench.quick, wanted, show)
    else:
        measure_cases(bench, cases.CASES, wanted, show)
        measure_rest(bench, wanted, show)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("pattern", nargs="?", default="", help="regular expression on case names")
    parser.add_argument("--device", help="default: the accelerator, or ve:0 with --ve")
    parser.add_argument("--against", help="default: cpu, or graft:0 with --ve")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="3 pairs per case")
    parser.add_argument("--tiny", action="store_true", help="break the one-element call down")
    parser.add_argument("--kernels", action="store_true", help="kernel by kernel, for docs/")
    parser.add_argument("--distributed", action="store_true", help="several processes, for docs/")
    parser.add_argument("--opencl", action="store_true", help="the OpenCL driver, for docs/")
    parser.add_argument("--ve", action="store_true", help="ve beside what carries it, for docs/")
    parser.add_argument("--publish", action="store_true",
                        help="put the medians into their table, and the table where readers look")  # fmt: skip
    parser.add_argument("--from-medians", action="store_true",
                        help="write page and chart again from the table of medians, measure nothing")  # fmt: skip
    parser.add_argument("--out", type=Path, help="the rows as JSON; default: build/bench")
    options = parser.parse_args()
    if options.pattern and (options.publish or options.from_medians):
        parser.error("a page shows the whole table: publish without a pattern")
    if options.publish and (options.device or options.against):
        parser.error("the pages have sides of their own: publish without --device and --against")
    return options


def show(row: Row) -> None:
    name, goal, value, interval, ours, theirs, verdict = report.cells(row)
    noise = f"  (idle side burnt {row.idle:.0%} of a core)" if row.idle > 0.1 else ""
    print(f"{name:<36} {goal:>9} {value:>8} [{interval}] {ours:>9} {theirs:>9} "
          f"{verdict}{noise}", flush=True)  # fmt: skip


@contextmanager
def opened(options: argparse.Namespace, kind: str) -> Iterator[Bench]:
    """The bench of a table, with both sides' processes."""
    ours, theirs = ve_rows.SIDES if kind == "ve" else (default_device(), "cpu")
    ours, theirs = options.device or ours, options.against or theirs
    with Side(ours, SETTINGS.get(kind)) as device, Side(theirs) as against:
        yield Bench(device, against, options.threads, options.quick)


def measured(options: argparse.Namespace, kind: str) -> tuple[list[Row], dict[str, Any]]:
    """Measures a table's wanted rows and prints each. Returns them and the machine's facts."""
    rows: list[Row] = []

    def keep(row: Row) -> None:
        rows.append(row)
        show(row)

    with opened(options, kind) as bench:
        facts = report.machine(options.threads, bench.device.device, bench.against.device)
        measure(bench, kind, re.compile(options.pattern).search, keep)
    return rows, facts


def main() -> int:
    options = arguments()
    kind = next((kind for kind in TABLES if getattr(options, kind, False)), "all")
    if options.tiny:
        with opened(options, kind) as bench:
            print(breakdown(bench))
        return 0
    if options.from_medians:
        publish(kind)
        return 0
    rows, facts = measured(options, kind)
    report.write_json(options.out or medians.RAW / f"{kind}.json", rows, facts)
    fresh = medians.stamped(rows, facts)
    if options.publish:
        medians.write(kind, fresh)
        publish(kind)
    print(report.summary(rows, medians.facts(fresh, facts["device"], facts["against"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
