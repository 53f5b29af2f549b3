"""Runs the three examples on the device and prints one table; fails when a check fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import digits
import embeddings
import resnet50
from record import Record, side_options, table

TITLES = ("example", "result", "time", "native ops", "fallbacks", "peak memory", "checks")


def row(record: Record, against: str) -> tuple[str, ...]:
    return (
        record.name,
        record.result,
        f"{record.seconds:.3g} s ({against} {record.against:.3g} s)",
        f"{record.native}",
        f"{sum(record.fallbacks.values())}",
        f"{record.peak / 2**20:.0f} MiB",
        "hold" if record.ok else "FAIL",
    )


def examples(samples: int) -> dict[str, Callable[[str, str, Path], Record]]:
    """The examples, those that time calls with so many samples of each."""
    return {
        "digits": digits.run,
        "resnet50": partial(resnet50.run, pairs=samples),
        "embeddings": partial(embeddings.run, repeats=samples),
    }


def attempt(
    name: str, run: Callable[[str, str, Path], Record], device: str, against: str, out: Path
) -> Record:
    """The example's record; an exception is a check that fails, so that the others still run."""
    try:
        return run(device, against, out)
    except Exception as error:
        failed = {f"{type(error).__name__}: {error}": False}
        return Record(name, "did not finish", 0.0, 0.0, 0, {}, 0, failed)


def main() -> int:
    parser = side_options(__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *examples(0)], default=[])
    parser.add_argument("--samples", type=int, default=5, help="of each timed call")
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    options = parser.parse_args()
    records = []
    runs = examples(options.samples)
    for name in options.names or runs:
        records.append(attempt(name, runs[name], options.device, options.against, options.out))
        print(*records[-1].lines(), "", sep="\n", flush=True)
    print(table([TITLES, *(row(r, options.against) for r in records)]))
    for record in records:
        if record.fallbacks:
            print(f"{record.name} fell back: {record.fallbacks}")
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps([r.plain() for r in records], indent=1, default=str)
    (options.out / "demo.json").write_text(text)
    return 0 if all(r.ok for r in records) else 1


if __name__ == "__main__":
    raise SystemExit(main())
