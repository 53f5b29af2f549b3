"""The committed table of medians: what the pages, the README's rows and the charts are drawn from.

Samples and single runs stay in build/bench, which git ignores. A row carries the day, the commit and
the machine of its measurement; the commit of rows from before this table is the one that brought them.
"""

from __future__ import annotations

import csv
import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from pairs import Row

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/measurements/medians.csv"
RAW = ROOT / "build/bench"
NUMBERS = {"goal": "goal", "median": "value", "low": "low", "high": "high",
           "device": "device_min", "against": "against_min"}  # fmt: skip
COLUMNS = ("table", "row", "unit", *NUMBERS, "date", "commit", "machine", "threads", "torch")
DIGITS = 9


@dataclass
class Median:
    """A row and where it was measured."""

    row: Row
    date: str
    commit: str
    machine: str
    threads: int
    torch: str


def commit() -> str:
    """This tree's commit, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def stamped(rows: list[Row], facts: dict[str, Any]) -> list[Median]:
    """Rows that were measured today in this tree, on the machine of the facts."""
    place = facts["processor"], facts["threads"], facts["torch"]
    today, tree = datetime.date.today().isoformat(), commit()
    return [Median(row, today, tree, *place) for row in rows]


def read_all(path: Path = TABLE) -> dict[str, list[Median]]:
    """Every table's medians, in the file's order."""
    found: dict[str, list[Median]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            numbers = {field: float(line[column]) for column, field in NUMBERS.items()}
            row = Row(name=line["row"], unit=line["unit"], **numbers)
            place = line["machine"], int(line["threads"]), line["torch"]
            found.setdefault(line["table"], []).append(
                Median(row, line["date"], line["commit"], *place)
            )
    return found


def read(table: str, path: Path = TABLE) -> list[Median]:
    """Raises ValueError, with what to do, if the table has no such rows."""
    found = read_all(path)
    if table not in found:
        raise ValueError(f"{path.name} has no rows of {table!r}: measure them with --publish")
    return found[table]


def published(
    table: str, sides: tuple[str, str] = ("graft", "cpu")
) -> tuple[list[Row], dict[str, Any]]:
    """The rows that the table of medians has, and where they were measured."""
    kept = read(table)
    return [one.row for one in kept], facts(kept, *sides)


def write(table: str, medians: list[Median], path: Path = TABLE) -> None:
    """Puts the medians in the place of the table's; the other tables stay."""
    found = read_all(path) if path.exists() else {}
    found[table] = medians
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, rows in found.items():
            for one in rows:
                numbers = [f"{getattr(one.row, field):.{DIGITS}g}" for field in NUMBERS.values()]
                writer.writerow([name, one.row.name, one.row.unit, *numbers, one.date, one.commit,
                                 one.machine, one.threads, one.torch])  # fmt: skip


def mean_ratio(rows: list[Row]) -> float:
    """Geometric mean of the rows that are ratios of times; 1.0 where there is none."""
    ratios = [row.value for row in rows if row.unit == "ratio"]
    return geometric_mean(ratios) if ratios else 1.0


def score(rows: list[Row]) -> str:
    """How many goals hold."""
    held = sum(row.verdict == "holds" for row in rows)
    near = sum(row.verdict != "holds" and row.low <= row.goal for row in rows)
    return (f"{held} of {len(rows)} goals hold, {near} more within their interval; geometric mean "
            f"of the ratios {mean_ratio(rows):.2f}")  # fmt: skip


def facts(medians: list[Median], device: str, against: str) -> dict[str, Any]:
    """What the last line of a page says of the machine and the day."""
    newest = max(medians, key=lambda one: one.date)
    dates = sorted({one.date for one in medians})
    trees = sorted({(one.date, one.commit) for one in medians})
    return {
        "device": device, "against": against, "processor": newest.machine,
        "threads": newest.threads, "torch": newest.torch,
        "date": dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        "commit": ", ".join(dict.fromkeys(tree for _, tree in trees)),
    }  # fmt: skip
