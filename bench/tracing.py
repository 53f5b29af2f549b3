"""What the trace layer costs: instructions of a driver's calls, times of a tiny addition of torch.

    python bench/tracing.py [pairs]

trace_calls.cpp calls the host's driver; callgrind counts its instructions at two lengths, whose
difference is the calls'. Torch's processes take turns; each tells the least time of a call over many
batches. Prints the rows of docs/measurements/tracing.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from asking import least
from torch_graft import drivers

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = {
    "": "no layer",
    "summary=0,rules=0": "`rules=0`",
    "summary=0,probe=0": "`probe=0`",
    "summary=0": "`1`",
}
KINDS = ("query", "fill", "launch")
SHORT, LONG = 500, 2500


def build(folder: str) -> str:
    program = f"{folder}/trace_calls"
    source = str(ROOT / "bench/trace_calls.cpp")
    command = ["c++", "-std=c++20", "-O2", f"-I{ROOT}/include", source, "-o", program, "-ldl"]
    subprocess.run(command, check=True)
    return program


def instructions(program: str, settings: str, kind: str) -> int:
    """Of a call."""
    counts = []
    for calls in (SHORT, LONG):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
                   str(Path(str(drivers.host())).parent), settings, kind, str(calls)]  # fmt: skip
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        found = re.search(r"Collected : (\d+)", ran.stderr)
        assert found, ran.stderr
        counts.append(int(found[1]))
    return round((counts[1] - counts[0]) / (LONG - SHORT))


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times: dict[str, list[float]] = {settings: [] for settings in SETTINGS}
    for _ in range(turns):
        for settings in SETTINGS:
            times[settings].append(least(GRAFT_DEVICES="host", GRAFT_DRIVER_TRACE=settings))
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for settings, name in SETTINGS.items():
            counts = [instructions(program, settings, kind) for kind in KINDS]
            more = median(a - b for a, b in zip(times[settings], times[""], strict=True))
            print(f"| {name} | {' | '.join(map(str, counts))} "
                  f"| {median(times[settings]):.0f} ns | {more:.0f} ns |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
