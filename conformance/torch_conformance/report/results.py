# conformance/torch_conformance/report/results.py: the files that state what a run found.
"""results.json, junit.xml and the page are made from the journal (journal.py)."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

from torch_conformance.report import junit, page, schema


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def save(results: dict[str, Any], path: Path) -> None:
    """Writes results.json, a line for each cell."""
    head = {name: value for name, value in results.items() if name != "cells"}
    rows = ",\n".join(json.dumps(cell) for cell in results["cells"])
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(head)[:-1] + ', "cells": [\n' + rows + "\n]}\n")
    os.replace(fresh, path)


def write(found: dict[str, Any], folder: Path, with_page: bool) -> None:
    save(found, folder / "results.json")
    junit.write(found, folder / "junit.xml")
    if with_page:
        page.write_page(found, folder / "report.html")


def totals(cells: list[dict[str, Any]]) -> dict[str, int]:
    counts = dict.fromkeys((status.name for status in schema.STATUSES), 0)
    for cell in cells:
        counts[cell["status"]] += 1
    return counts


def is_green(cells: list[dict[str, Any]]) -> bool:
    return not any(cell["status"] in schema.BAD for cell in cells)
