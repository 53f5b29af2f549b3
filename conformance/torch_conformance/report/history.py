# conformance/torch_conformance/report/history.py: what is kept of a run for good: one line of a file that only grows.
"""python -m torch_conformance.report.history RESULTS... HISTORY appends the run to the file."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from torch_conformance.report import schema, shards

SCHEMA = "torch-conformance-history/1"
REASONS = 20  # the commonest reasons for skips are kept
_FIELDS: dict[str, Any] = {
    "label": str,
    "started": str,
    "complete": bool,
    "counts": dict,
    "ran": dict,
    "groups": list,
    "skips": list,
}


def row(results: dict[str, Any]) -> dict[str, Any]:
    """The run without its cells. groups: [suite, dtype, passed, judged]; skips: [reason, cells]."""
    device = results["device"]
    cells = results["cells"]
    passed = [cell for cell in cells if cell["status"] == "pass"]
    judged = Counter((c["suite"], c["dtype"]) for c in cells if c["status"] != "skip")
    good = Counter((c["suite"], c["dtype"]) for c in passed)
    skips = Counter(c["reason"] or "(no reason)" for c in cells if c["status"] == "skip")
    return {
        "schema": SCHEMA,
        "label": device["label"],
        "name": device["name"],
        "hardware": device.get("hardware") or "",
        "torch": device.get("torch") or "",
        "package": device.get("package") or "",
        "options": device.get("options") or {},
        "started": results["started"],
        "seconds": results["seconds"],
        "complete": results["complete"],
        "counts": dict(Counter(c["status"] for c in cells)),
        "ran": dict(Counter(_ran(c) for c in passed)),
        "groups": [[suite, dtype, good[suite, dtype], n] for (suite, dtype), n in judged.items()],
        "skips": skips.most_common(REASONS),
    }


def _ran(cell: dict[str, Any]) -> str:
    if cell["fallbacks"]:
        return "fallback"
    return {True: "native", False: "not native", None: "not proven"}[cell["native"]]


def key(kept: dict[str, Any]) -> tuple[str, str]:
    """What makes a run: its device and its start."""
    return kept["label"], kept["started"]


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a history file; raises schema.ResultsError, which names file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise schema.ResultsError(f"{path} cannot be read: {error}.") from error
    rows = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            kept = json.loads(line)
        except ValueError as error:
            raise schema.ResultsError(f"{where} is not JSON ({error}): remove the line.") from error
        found = kept.get("schema") if isinstance(kept, dict) else None
        if found != SCHEMA:
            raise schema.ResultsError(f"{where}: expected schema '{SCHEMA}', found {found!r}.")
        schema.check_fields(kept, _FIELDS, where)
        rows.append(kept)
    return rows


def append(path: Path, kept: dict[str, Any]) -> bool:
    """Adds a run at the end of the file; False when it is there already."""
    if path.exists() and key(kept) in map(key, read(path)):
        return False
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept, separators=(",", ":")) + "\n")
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m torch_conformance.report.history",
        description="Appends what is kept of a run to a history file.",
    )
    parser.add_argument(
        "results", type=Path, nargs="+", help="the results.json of a run, or those of its shards"
    )
    parser.add_argument("history", type=Path, help="a file of JSON lines; made when absent")
    options = parser.parse_args(arguments)
    try:
        runs = shards.joined([schema.read(path) for path in options.results])
        added = [append(options.history, row(run)) for run in runs]
    except schema.ResultsError as error:
        print(f"history: {error}", file=sys.stderr)
        return 2
    print(f"{options.history}: {sum(added)} runs appended, {added.count(False)} there already")
    return 0


if __name__ == "__main__":
    sys.exit(main())
