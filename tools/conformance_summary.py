#!/usr/bin/env python3
# tools/conformance_summary.py: turns the results of torch-conformance into the summary that is committed.
"""Usage: tools/conformance_summary.py RESULTS docs/generated/conformance/NAME.toml [--commit COMMIT]

RESULTS is the results.json of a run (.gz too). The summary keeps counts, reasons, failures and one letter
for each cell; messages of cells that pass, and times, stay with the run under build/.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/generated/conformance"
SCHEMA = "torch-conformance/1"  # of the results that are read
# A letter for each cell. The first four pass.
LETTERS = {
    "P": "passes, proven: wrong when launches are dropped",
    "p": "passes; no sample can tell whether a launch computed it, or nobody asked",
    "d": "passes, also when launches are dropped",
    "c": "passes, an operator was left to the CPU",
    "~": "fails as the list of reasons says",
    "-": "not run, with a reason",
    "f": "computes something else",
    "e": "raises",
    "x": "the process died",
    "h": "did not end in time",
    "+": "passes although a failure is expected",
    ".": "no such cell",
}
_STATUS = {"~": "xfail", "-": "skip", "f": "fail", "e": "error", "x": "crash", "h": "hang"}
_STATUS |= {"+": "xpass"} | dict.fromkeys("Ppdc", "pass")
_LETTER = {status: letter for letter, status in _STATUS.items() if status != "pass"}
# One cell may have several reasons, each of which names its kind first; "; " is also within one.
_KINDS = re.compile(
    r"; (?=some |random |positions of |returns memory |what has grown |[\w ]+ left out: )"
)
NAMED = 8  # a reason of at most so many cells names them


class Cell(NamedTuple):
    suite: str
    entry: str
    dtype: str
    aspect: str


def letter(cell: dict[str, Any]) -> str:
    if cell["status"] != "pass":
        return _LETTER[cell["status"]]
    if cell["fallbacks"]:
        return "c"
    return {True: "P", False: "d", None: "p"}[cell["native"]]


def _name(cell: dict[str, Any]) -> str:
    return " ".join(cell[field] for field in Cell._fields)


def _ordered(cells: list[dict[str, Any]], field: str) -> list[str]:
    return list(dict.fromkeys(cell[field] for cell in cells))


def _matrix(cells: list[dict[str, Any]], dtypes: list[str], aspects: list[str]) -> dict[str, str]:
    """Entry -> a group of letters for each aspect, a letter for each dtype."""
    found = {(cell["entry"], cell["aspect"], cell["dtype"]): letter(cell) for cell in cells}
    return {
        entry: " ".join(
            "".join(found.get((entry, aspect, dtype), ".") for dtype in dtypes).rstrip(".") or "."
            for aspect in aspects
        )
        for entry in sorted({cell["entry"] for cell in cells})
    }


def _reasons(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    named: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for cell in cells:
        for reason in _KINDS.split(cell["reason"]) if cell["reason"] else ():
            named[cell["status"], reason].append(_name(cell))
    rows = []
    for (status, reason), mine in sorted(named.items(), key=lambda item: -len(item[1])):
        row = {"status": status, "count": len(mine), "reason": reason}
        rows.append(row | ({"cells": mine} if len(mine) <= NAMED and status != "pass" else {}))
    return rows


def _left(cells: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Operator -> "suite entry aspect,aspect" of the cells that left it to the CPU, whatever their dtype."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for operator in cell["fallbacks"]:
            entries = found.setdefault(operator.removeprefix("aten::"), {})
            entries.setdefault(f"{cell['suite']} {cell['entry']}", {})[cell["aspect"]] = None
    return {
        operator: [f"{entry} {','.join(aspects)}" for entry, aspects in entries.items()]
        for operator, entries in sorted(found.items())
    }


def summarize(results: dict[str, Any], commit: str) -> dict[str, Any]:
    """The summary of a results file; raises ValueError for one of another schema."""
    if results.get("schema") != SCHEMA:
        raise ValueError(f"expected results of schema {SCHEMA}, found {results.get('schema')!r}")
    cells = results["cells"]
    often = collections.Counter(cell["dtype"] for cell in cells)
    dtypes = [dtype for dtype, _ in often.most_common()]
    suites: dict[str, Any] = {}
    for suite in _ordered(cells, "suite"):
        mine = [cell for cell in cells if cell["suite"] == suite]
        aspects = _ordered(mine, "aspect")
        counts = collections.Counter((cell["aspect"], cell["status"]) for cell in mine)
        suites[suite] = {
            "counts": {aspect: {status: number for (one, status), number in sorted(counts.items())
                                if one == aspect} for aspect in aspects},
            "cells": _matrix(mine, dtypes, aspects),
        }  # fmt: skip
    bad = [cell for cell in cells if cell["status"] not in ("pass", "skip")]
    return {
        "device": {key: value for key, value in results["device"].items() if key != "options"},
        "run": {
            "date": results["started"][:10], "commit": commit, "complete": results["complete"],
            "minutes": round(results["seconds"] / 60, 1), "cells": len(cells),
            "samples": sum(cell["samples"] for cell in cells), "dtypes": dtypes,
        },
        "reasons": _reasons(cells),
        "failures": [{"cell": _name(c), "status": c["status"], "message": c["message"]} for c in bad],
        "left_to_the_cpu": _left(cells),
        "suites": suites,
    }  # fmt: skip


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_rows(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _rows(table: dict[str, Any]) -> list[str]:
    bare = re.compile(r"[\w-]+", re.ASCII).fullmatch
    return [
        f"{key if bare(key) else json.dumps(key)} = {_value(value)}" for key, value in table.items()
    ]


def text(summary: dict[str, Any], name: str) -> str:
    """The summary as TOML, a line for each entry."""
    lines = [
        f"# docs/generated/conformance/{name}: a run of torch-conformance in short.",
        "# Written by tools/conformance_summary.py; do not edit. An entry has a group of letters for each aspect of its",
        "# suite's counts, and a letter for each dtype, down to the last:",
        *(f"#   {one}  {meaning}" for one, meaning in LETTERS.items()),
    ]
    for table in ("device", "run", "left_to_the_cpu"):
        lines += ["", f"[{table}]", *_rows(summary[table])]
    for array in ("reasons", "failures"):
        for row in summary[array]:
            lines += ["", f"[[{array}]]", *_rows(row)]
    for suite, parts in summary["suites"].items():
        for part, rows in parts.items():
            lines += ["", f"[suites.{suite}.{part}]", *_rows(rows)]
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def results_of(summary: dict[str, Any]) -> dict[str, Any]:
    """Results as torch-conformance writes them, without samples and times of single cells."""
    left: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for operator, names in summary["left_to_the_cpu"].items():
        for name in names:
            entry, _, aspects = name.rpartition(" ")
            for aspect in aspects.split(","):
                left[f"{entry} {aspect}"][f"aten::{operator}"] = 1
    reasons = {
        name: row["reason"] for row in summary.get("reasons", []) for name in row.get("cells", [])
    }
    messages = {row["cell"]: row["message"] for row in summary.get("failures", [])}
    cells = []
    for suite, parts in summary["suites"].items():
        for entry, groups in parts["cells"].items():
            for aspect, letters in zip(parts["counts"], groups.split(" "), strict=True):
                # A group ends with its last letter: the dtypes behind it have no such cell.
                for dtype, one in zip(summary["run"]["dtypes"], letters, strict=False):
                    if one == ".":
                        continue
                    name = f"{suite} {entry} {dtype} {aspect}"
                    cells.append({
                        "suite": suite, "entry": entry, "dtype": dtype, "aspect": aspect,
                        "status": _STATUS[one], "samples": 0, "seconds": 0.0,
                        "message": messages.get(name, ""), "reason": reasons.get(name, ""),
                        "fallbacks": left[f"{suite} {entry} {aspect}"] if one == "c" else {},
                        "native": {"P": True, "d": False}.get(one),
                    })  # fmt: skip
    run = summary["run"]
    return {"schema": SCHEMA, "device": summary["device"], "started": f"{run['date']}T00:00:00Z",
            "seconds": 60 * run["minutes"], "complete": run["complete"], "shard": [1, 1],
            "cells": cells}  # fmt: skip


def head() -> str:
    """The commit of this tree, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("summary", type=Path)
    parser.add_argument("--commit", help="that was run; default: this tree's")
    options = parser.parse_args()
    raw = options.results.read_bytes()
    results = json.loads(gzip.decompress(raw) if options.results.suffix == ".gz" else raw)
    made = text(summarize(results, options.commit or head()), options.summary.name)
    options.summary.write_text(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
