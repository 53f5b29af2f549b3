# conformance/torch_conformance/report/page.py: writes the results of a run as one HTML page that needs no network.
"""The page holds its own style, program and results: see page.html, page.css and page*.js."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

from torch_conformance.report.schema import STATUSES

AWAY, PARTLY = "○", "◐"  # passes, but none or only some of it natively
_PROGRAM = ("page_results.js", "page_matrix.js", "page.js")
_HERE = Path(__file__).parent
_NATIVE = {None: 0, True: 1, False: 2}
_KINDS = ("bfloat", "float", "complex", "int", "uint", "bool")


def write_page(results: dict[str, Any], path: Path) -> None:
    """Writes the page of checked results (schema.check) to `path`."""
    path.write_text(page(results), encoding="utf-8")


def page(results: dict[str, Any]) -> str:
    packed = gzip.compress(json.dumps(pack(results), separators=(",", ":")).encode(), mtime=0)
    return fill(
        "page.html",
        TITLE=html.escape(f"Conformance of {results['device']['label']}"),
        STYLE=style(),
        PROGRAM="".join((_HERE / name).read_text(encoding="utf-8") for name in _PROGRAM),
        DATA=json.dumps(base64.b64encode(packed).decode()),
    )


def style() -> str:
    return (_HERE / "page.css").read_text(encoding="utf-8")


def fill(template: str, **values: str) -> str:
    """The template with each %NAME% replaced, in one pass: a value may contain such a name."""
    text = (_HERE / template).read_text(encoding="utf-8")
    return re.sub(r"%([A-Z]+)%", lambda match: values[match[1]], text)


def pack(results: dict[str, Any]) -> dict[str, Any]:
    """The results as columns of numbers that point into tables of names and texts."""
    cells = sorted(results["cells"], key=lambda c: (c["suite"], c["entry"]))
    dtypes = _Table(sorted({c["dtype"] for c in cells}, key=dtype_order))
    aspects = _Table(c["aspect"] for c in results["cells"])
    suites, strings, rows = _Table(), _Table([""]), _Table()
    fallbacks = _Table([()])
    status = _Table(s.name for s in STATUSES)
    columns: dict[str, list[float]] = {
        "row": [rows[suites[c["suite"]], strings[c["entry"]]] for c in cells],
        "dtype": [dtypes[c["dtype"]] for c in cells],
        "aspect": [aspects[c["aspect"]] for c in cells],
        "status": [status[c["status"]] for c in cells],
        "samples": [c["samples"] for c in cells],
        "ms": [round(c["seconds"] * 1e3, 1) for c in cells],
        "message": [strings[c["message"]] for c in cells],
        "reason": [strings[c["reason"]] for c in cells],
        "native": [_NATIVE[c["native"]] for c in cells],
        "fallbacks": [
            fallbacks[tuple((strings[name], calls) for name, calls in c["fallbacks"].items())]
            for c in cells
        ],
    }
    return {
        "head": {key: value for key, value in results.items() if key != "cells"},
        "statuses": [s._asdict() for s in STATUSES],
        "away": AWAY,
        "partly": PARTLY,
        "suites": list(suites),
        "dtypes": list(dtypes),
        "aspects": list(aspects),
        "strings": list(strings),
        "fallback_sets": list(fallbacks),
        "rows": {"suite": [s for s, _ in rows], "name": [n for _, n in rows]},
        "cells": columns,
    }


class _Table(dict[Any, int]):
    """Numbers values in the order of their first look-up."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        for value in values:
            self[value]

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number


def dtype_order(name: str) -> tuple[int, int, str]:
    """Floating point first, then complex, integers and bool; the narrow before the wide."""
    kind = re.match(r"[a-z]*", name)[0]  # type: ignore[index]
    bits = re.search(r"\d+", name)
    rank = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    return max(rank, 1), int(bits[0]) if bits else 0, name
