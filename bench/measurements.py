"""Publishes `make bench`: every row on a page, eight rows in the README, a chart of these eight."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import chart
import medians
import report
from pairs import Row

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGE = ROOT / "docs/measurements/measurements.md"
README_ROWS = (
    "tiny add",
    "1024² softmax",
    "gemm 1024",
    "fused AdamW of ResNet-50",
    "digits training epoch",
    "ResNet-50 inference b16",
    "ResNet-50 training b8",
    "ResNet-50 training b8: peak memory",
)


def chosen(rows: list[Row]) -> list[Row]:
    """The README's rows, in its order."""
    by_name = {row.name: row for row in rows}
    missing = [name for name in README_ROWS if name not in by_name]
    if missing:
        raise ValueError(f"the README's rows {missing} are not measured: run `make bench`")
    return [by_name[name] for name in README_ROWS]


def tables(rows: list[Row], facts: dict[str, Any]) -> dict[Path, str]:
    """Each page's text between its marks. The last line counts all rows on both pages."""
    summary = report.summary(rows, facts)
    shown = {README: chosen(rows), PAGE: rows}
    return {page: f"{report.table(some, facts)}\n\n{summary}" for page, some in shown.items()}


def publish(rows: list[Row], facts: dict[str, Any]) -> None:
    for page, text in tables(rows, facts).items():
        page.write_text(report.put_between(page.read_text(), text))
    chart.draw_few(chosen(rows), PAGE.with_suffix(".svg"))


published = partial(medians.published, "all")
