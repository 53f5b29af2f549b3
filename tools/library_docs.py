# tools/library_docs.py: writes docs/use/libraries/forty.md from what tools/library_runs.py recorded.
"""Usage: tools/library_docs.py [--check]. With --check nothing is written; the exit code is 1 when the page differs
from what docs/generated/libraries.json says."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from generated_page import ROOT, settle

RECORDS = ROOT / "docs/generated/libraries.json"
PAGE = ROOT / "docs/use/libraries/forty.md"
HEADING = "| library | version | what was done | numbers | largest difference | computed by the CPU |\n|---|---|---|---|---|---|"
ROOMS = {
    "training": "Training",
    "language": "Language and sound",
    "vision": "Vision",
    "science": "Science",
}
INTRODUCTION = """\
<!-- docs/use/libraries/forty.md: written by tools/library_docs.py from docs/generated/libraries.json; do not edit. -->
# Libraries, tried by their main uses

Each row is [a script](../../../tests/libraries/README.md) of ten to thirty lines that names its device, run on the CPU and on the device `{device}`, torch {torch}, Python {python}; last on {date}.
`tools/library_runs.py` repeats it, and runs only what has changed: a row has the commit of Graft and the date in [the data](../../generated/libraries.json).

{score}.

*Numbers*: **equal** within the tolerances of `torch.testing`; **near**: all results, gradients and weights differ by at most a thousandth of the largest number of their
tensor, or of 0.01 if that is larger, which is the column *largest difference*; otherwise it **differs**. *Computed by the CPU*: [fallbacks](../fallback.md), with the number of calls.
Models have random weights and no dropout; random numbers are drawn on the CPU.
"""
ABSENT = """\
## Not tried here

These do not install or do not run beside this torch, on the CPU either.

| library | version | why |
|---|---|---|
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def difference(row: dict[str, Any]) -> str:
    found = row["difference"]
    return "" if found is None else f"{found:.0e}" if found else "0"


def line(row: dict[str, Any]) -> str:
    fallen = ", ".join(f"`{name}` {calls}" for name, calls in row["fallbacks"].items()) or "none"
    if row["verdict"] == "fails":
        numbers, fallen = f"**fails**: {cell(row['reason'])}", ""
    else:
        numbers = row["verdict"] if row["verdict"] == "equal" else f"**{row['verdict']}**"
    what = cell(row["what"])
    return f"| {row['distribution']} | {row['version']} | {what} | {numbers} | {difference(row)} | {fallen} |"


def page(data: dict[str, Any]) -> str:
    rows = sorted(data["rows"].values(), key=lambda row: (row["distribution"], row["what"]))
    here = [row for row in rows if row["verdict"] != "not here"]
    found = Counter(row["verdict"] for row in here)
    parts = [
        f"{found[name]} {name}" for name in ("equal", "near", "differs", "fails") if found[name]
    ]
    native = sum(not row["fallbacks"] and row["verdict"] != "fails" for row in here)
    score = (f"{len({row['distribution'] for row in here})} libraries in {len(here)} uses: {', '.join(parts)}; {native} without "
             f"a fallback; {len(rows) - len(here)} more could not be tried")  # fmt: skip
    text = INTRODUCTION.format(
        **{name: data[name] for name in ("device", "torch", "python", "date")}, score=score
    )
    for room, heading in ROOMS.items():
        lines = [line(row) for row in here if row["room"] == room]
        text += "\n".join(["", f"## {heading}", "", HEADING, *lines, ""])
    absent = [
        f"| {row['distribution']} | {row['version']} | {cell(row['reason'])} |"
        for row in rows
        if row not in here
    ]
    return text + ("\n" + ABSENT + "\n".join(absent) + "\n" if absent else "")


def main(arguments: list[str]) -> int:
    return settle({PAGE: page(json.loads(RECORDS.read_text()))}, arguments, __file__)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
