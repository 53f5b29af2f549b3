# tools/status_docs.py: writes docs/state.md and the README's table of what is supported from docs/status.toml.
"""Turns promises, supported things and features into two pages; figures come from the medians and reports.

Usage: tools/status_docs.py [--check]. With --check nothing is written; the exit code is 1 when a page
differs from what the data say.
"""

from __future__ import annotations

import collections
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import tomllib

sys.path.insert(0, str(Path(__file__).parent))
import conformance_summary
from generated_page import ROOT, settle

DATA = ROOT / "docs/status.toml"
PAGE = ROOT / "docs/state.md"
README = ROOT / "README.md"
MEDIANS = ROOT / "docs/measurements/medians.csv"
MARK = re.compile(r"(<!-- status -->\n).*?(<!-- /status -->)", re.DOTALL)
VERDICTS = ("holds", "fails", "open")
PLACES = ("fresh clone", "tree", "published")
STATES = ("works", "differs", "not possible", "not yet")
INTRODUCTION = """\
<!-- docs/state.md: written by tools/status_docs.py from docs/status.toml; do not edit. -->
# State: what was promised, what is supported, and what shows it

Made from [status.toml](status.toml) by `tools/status_docs.py`; edit the data, not this page. [The README](../README.md#what-is-supported) has the short table.

## The promises

A promise *holds* or *fails*; it is *open* while nobody has seen its command end. It was seen in a fresh clone, in a build of the working *tree*, or in what is
*published*: a table of [measurements](measurements/README.md) or [a report](generated/conformance/README.md). `make test` as figures means that this command runs it.
A commit that git does not know is of a history that was rewritten since.

*Native* means computed by the driver: with outputs poisoned and `GRAFT_HOST_FAULTS=launch:drop` the result must come out wrong, and a
dispatcher-level observer sees no ATen CPU kernel on the op's data.
"""
FEATURES = """\
## The features and their tests

What torch.cuda's users take for granted. PyTorch checks CUDA in its own test files; the tables go through them, group tests that ask the same, and have the
features that those files do not test, too. Operators are in [a list of their own](generated/operators.md), and goals of speed are promises.

- **works**: a test of Graft shows it.
- **differs**: supported, with the stated difference.
- **not possible**: the released PyTorch wheel refuses it to devices outside its source; the row shows the error.
- **not yet**: possible, but missing or untested.

A test is named by its function, and by its file where several share the name; `Suite.Name` is a test without torch. `tests/tools/test_status.py` checks that
each exists, is not skipped and is not an expected failure. PyTorch's tests move between its files from version to version; the names are those near 2.13.
"""


def medians() -> dict[str, list[dict[str, str]]]:
    """Table -> the rows of the committed medians."""
    found = collections.defaultdict(list)
    with MEDIANS.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            found[line["table"]].append(line)
    return dict(found)


def score(rows: list[dict[str, str]]) -> str:
    """How many goals hold, as the pages of measurements say it."""
    goals = [(float(row["median"]), float(row["low"]), float(row["goal"])) for row in rows]
    held = sum(value <= goal for value, _, goal in goals)
    near = sum(low <= goal < value for value, low, goal in goals)
    mean = geometric_mean([float(row["median"]) for row in rows if row["unit"] == "ratio"])
    return (f"{held} of {len(rows)} goals hold, {near} more within their interval, "
            f"geometric mean {mean:.2f}")  # fmt: skip


def report(name: str, what: str) -> str:
    """A figure of a conformance summary: cells, a status, op_db's entries, or those free of the CPU."""
    summary = conformance_summary.read(conformance_summary.FOLDER / f"{name}.toml")
    if what in ("entries", "free", "share"):
        cells = [cell for cell in conformance_summary.results_of(summary)["cells"]
                 if cell["suite"] == "op" and cell["aspect"] in ("forward", "backward")]  # fmt: skip
        entries = {cell["entry"] for cell in cells}
        left = {cell["entry"] for cell in cells if cell["fallbacks"]}
        numbers = {"entries": len(entries), "free": len(entries - left)}
        numbers["share"] = round(100 * numbers["free"] / len(entries))
        return str(numbers[what])
    if what == "cells":
        return f"{summary['run']['cells']:,}"
    counts = [aspect for suite in summary["suites"].values() for aspect in suite["counts"].values()]
    return f"{sum(aspect.get(what, 0) for aspect in counts):,}"


def states(areas: list[dict[str, Any]]) -> str:
    """How many of the features that PyTorch's own tests check work, differ and so on."""
    rows = [state_of(row) for area in areas for row in area["rows"] if "cuda" in row]
    counts = collections.Counter(
        next(state for state in STATES if text.startswith(state)) for text in rows
    )
    return (f"of {len(rows)} behaviours {counts['works']} work, {counts['differs']} differ, "
            f"{counts['not possible']} are not possible on the wheel, {counts['not yet']} are not yet")  # fmt: skip


def state_of(row: dict[str, Any]) -> str:
    return str(row.get("state", "works"))


def filled(text: str, data: dict[str, Any], known: dict[str, list[dict[str, str]]]) -> str:
    """The text with its placeholders replaced; raises ValueError for one that names nothing."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        kind, _, rest = name.partition(":")
        if name == "states":
            return states(data["area"])
        if kind == "score" and rest in known:
            return score(known[rest])
        if kind == "report":
            return report(*rest.split(":"))
        table, _, row = name.partition("/")
        found = [line["median"] for line in known.get(table, []) if line["row"] == row]
        if len(found) != 1:
            raise ValueError(f"{DATA.name}: {{{name}}} names no row of {MEDIANS.name}")
        return f"{float(found[0]):.2f}"

    return re.sub(r"\{([^{}`]+)\}", value, text)


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(line) + " |" for line in (titles, *rows)]
    lines.insert(1, "|---" * len(titles) + "|")
    return [line.replace("|  |", "| |") for line in lines]


def promise(row: dict[str, str], fill: Any) -> tuple[str, ...]:
    seen = ", ".join(row[key] for key in ("where", "commit", "date") if row.get(key))
    return row["what"], row["command"], row["verdict"], seen, fill(row.get("figures", ""))


def feature(row: dict[str, Any]) -> tuple[str, ...]:
    shown = ", ".join(f"`{test}`" for test in row["tests"]) or row.get("shown", "")
    return row["name"], state_of(row), shown, row.get("cuda", "")


def page(data: dict[str, Any]) -> str:
    known = medians()

    def fill(text: str) -> str:
        return filled(text, data, known)

    every = [row for section in data["section"] for row in section["promise"]]
    counts = collections.Counter(row["verdict"] for row in every)
    numbers = f"{counts['holds']} hold, {counts['fails']} fail, {counts['open']} are open"
    lines = [INTRODUCTION, f"{len(every)} promises: {numbers}.", ""]
    for section in data["section"]:
        rows = [promise(row, fill) for row in section["promise"]]
        titles = ("promise", "command", "verdict", "seen", "figures")
        lines += [f"### {section['title']}", "", *table(titles, rows), ""]
    lines += [FEATURES, f"PyTorch's tests: {states(data['area'])}.", ""]
    for area in data["area"]:
        lines += [f"### {area['title']}", ""]
        if "pytorch" in area:
            lines += [f"PyTorch's files: {area['pytorch']}.", ""]
        compared = any("cuda" in row for row in area["rows"])
        width = 4 if compared else 3
        columns = ("feature", "state", "shown by", "PyTorch's tests")
        lines += [*table(columns[:width], [feature(row)[:width] for row in area["rows"]]), ""]
    return "\n".join(lines).rstrip() + "\n"


def readme(text: str, data: dict[str, Any]) -> str:
    """The README with its table written anew; raises ValueError if the marks are gone."""
    known = medians()
    rows = [
        (row["what"], filled(row["works"], data, known), row["limits"]) for row in data["supported"]
    ]
    block = "\n".join(table(("what", "works", "limits"), rows))
    changed, found = MARK.subn(lambda match: f"{match[1]}{block}\n{match[2]}", text)
    if found != 1:
        raise ValueError(f"expected one '<!-- status -->' ... '<!-- /status -->', found {found}")
    return changed


def main(arguments: list[str]) -> int:
    data = tomllib.loads(DATA.read_text())
    made = {PAGE: page(data), README: readme(README.read_text(), data)}
    return settle(made, arguments, __file__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
