# conformance/torch_conformance/report/schema.py: the form of a results file, what its statuses mean, and its reader.
"""Results are written by the runner and read by the report page, the site and the history.

Nothing here needs torch: a site can be made where it is not installed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from torch_conformance import SetupError

SCHEMA = "torch-conformance/1"


class Status(NamedTuple):
    name: str
    symbol: str  # so that colour is not the only difference
    bad: bool  # a run with such a cell is not green
    meaning: str


# The worst first: a field of the page that stands for several cells shows the first that occurs.
STATUSES = (
    Status("crash", "⊘", True, "the process that ran it died"),
    Status("hang", "∞", True, "it did not end within its time limit"),
    Status("error", "!", True, "raised where it should have computed"),
    Status("fail", "✗", True, "computed something else than the reference"),
    Status("xpass", "+", True, "passes although the list of reasons expects a failure"),
    Status("xfail", "~", False, "fails as the list of reasons says"),
    Status("pass", "✓", False, "agrees with the reference"),
    Status("skip", "-", False, "not run, with its reason"),
)
BAD = frozenset(status.name for status in STATUSES if status.bad)
_NAMES = frozenset(status.name for status in STATUSES)

_HEAD: dict[str, Any] = {
    "device": dict,
    "started": str,
    "seconds": (int, float),
    "complete": bool,
    "shard": list,
    "cells": list,
}
_DEVICE: dict[str, Any] = {"name": str, "label": str}  # the rest is shown where it is known
_CELL: dict[str, Any] = {
    **dict.fromkeys(("suite", "entry", "dtype", "aspect", "status"), str),
    "samples": int,
    "seconds": (int, float),
    "message": str,
    "reason": str,
    "fallbacks": dict,
    "native": (bool, type(None)),
}


class ResultsError(SetupError):
    """A results file cannot be read; the text names the file, the place and what to do."""


def read(path: Path) -> dict[str, Any]:
    """The results in a file (.gz too), or in a run's folder, checked down to each cell; raises ResultsError."""
    path = path / "results.json" if path.is_dir() else path
    try:
        text = path.read_bytes()
        results = json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)
    except OSError as error:
        raise ResultsError(
            f"{path} cannot be read: {error.strerror or error}; a run writes it at its end."
        ) from error
    except (ValueError, EOFError, zlib.error) as error:
        raise ResultsError(f"{path} is not JSON ({error}). {_remedy(path)}") from error
    check(results, str(path), _remedy(path))
    return results


def _remedy(path: Path) -> str:
    if path.with_name("cells.jsonl").exists():
        return "The run's cells are in cells.jsonl beside it: run again with --resume."
    return "Run the suite again."


def check(results: Any, where: str, remedy: str = "") -> None:
    """Raises ResultsError unless `results` has the form that SCHEMA names."""
    found = results.get("schema") if isinstance(results, dict) else None
    if found != SCHEMA:
        raise ResultsError(
            f"{where} holds no results of this schema: expected schema '{SCHEMA}', found "
            f"{found!r}. Give the results.json of a run; one of a newer version needs a newer "
            "torch-conformance."
        )
    check_fields(results, _HEAD, where)
    check_fields(results["device"], _DEVICE, f"{where}: device")
    if len(results["shard"]) != 2 or not all(isinstance(part, int) for part in results["shard"]):
        raise ResultsError(f"{where}: 'shard' must be [part, parts], found {results['shard']}.")
    for number, cell in enumerate(results["cells"]):
        problem = flaw(cell)
        if problem:
            raise ResultsError(f"{where}: cell {number}: {problem}. {remedy}".strip())


def flaw(cell: Any) -> str | None:
    """Why a value is not a finished cell; None when it is."""
    problem = _wrong_field(cell, _CELL)
    if problem or cell["status"] in _NAMES:
        return problem
    return f"{cell['entry']} has status {cell['status']!r}; known are {', '.join(sorted(_NAMES))}"


def check_fields(given: Any, kinds: dict[str, Any], where: str) -> None:
    """Raises ResultsError unless `given` is an object with these fields of these kinds."""
    problem = _wrong_field(given, kinds)
    if problem:
        raise ResultsError(f"{where}: {problem}.")


def _wrong_field(given: Any, kinds: dict[str, Any]) -> str | None:
    if not isinstance(given, dict):
        return f"expected an object, found {type(given).__name__}"
    for name, kind in kinds.items():
        if not isinstance(given.get(name, ...), kind):
            if name not in given:
                return f"'{name}' is missing"
            wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            return f"'{name}' must be {wanted}, found {type(given[name]).__name__}"
    return None
