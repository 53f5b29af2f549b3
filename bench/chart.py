"""Draws rows as a picture: each ratio with its interval, or each family's, beside its goal."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from statistics import geometric_mean

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from pairs import Row

COLUMNS = 3
COLOURS = {"holds": "#2e7d32", "misses": "#ef6c00", "misses twice": "#c62828"}
INCHES_PER_ROW = 0.17
WIDTH, FEW_WIDTH = 15, 7
# Text stays text, and the same rows give the same file.
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "graft"}


def family(row: Row) -> str:
    return row.name.split(":")[0]


def columns(rows: list[Row]) -> list[list[Row]]:
    """Whole families spread over the columns, in order, about equally long."""
    spread: list[list[Row]] = [[] for _ in range(COLUMNS)]
    share = len(rows) / COLUMNS
    done = 0
    for _, group in groupby(rows, family):
        members = list(group)
        spread[min(int((done + len(members) / 2) / share), COLUMNS - 1)] += members
        done += len(members)
    return spread


def draw_column(axes: Axes, rows: list[Row], label: str, scale: str) -> None:
    for place, row in enumerate(rows):
        colour = COLOURS[row.verdict]
        axes.plot([row.low, row.high], [place, place], color=colour, linewidth=3, alpha=0.4)
        axes.plot(row.value, place, "o", color=colour, markersize=4)
        axes.plot(row.goal, place, "|", color="#555555", markersize=8)
    axes.axvline(1.0, color="#999999", linewidth=0.8)
    axes.set_xscale(scale)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=6)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlabel(f"{label} (a tick marks the goal)", fontsize=7)
    axes.grid(axis="x", linewidth=0.3)


def save(spread: list[list[Row]], path: Path, label: str, width: float, scale: str) -> None:
    """Writes an SVG of the columns side by side."""
    height = 1.0 + INCHES_PER_ROW * max(len(column) for column in spread)
    with matplotlib.rc_context(SETTINGS):
        figure, axes = pyplot.subplots(1, len(spread), figsize=(width, height), squeeze=False)
        for place, column in zip(axes[0], spread, strict=True):
            draw_column(place, column, label, scale)
        figure.tight_layout()
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    lines = path.read_text().splitlines()  # matplotlib leaves spaces at their ends
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines))


def draw(rows: list[Row], path: Path, against: str = "CPU's") -> None:
    """Writes an SVG of the rows that are ratios, in columns of whole families."""
    ratios = [row for row in rows if row.unit == "ratio"]
    save(columns(ratios), path, f"time / {against} time", WIDTH, "log")


def draw_few(rows: list[Row], path: Path) -> None:
    """Writes an SVG of a few rows in one column, ratios of time or of memory."""
    save([rows], path, "device / CPU, time or memory", FEW_WIDTH, "linear")


def families(rows: list[Row]) -> list[Row]:
    """A row for each family of ratios: their geometric mean, the least and the greatest, the usual goal."""
    found = []
    for name, group in groupby([row for row in rows if row.unit == "ratio"], family):
        members = list(group)
        values = [row.value for row in members]
        goals = sorted(row.goal for row in members)
        least, mean, most = min(values), geometric_mean(values), max(values)
        title = f"{name} ({len(members)})"
        found.append(Row(title, goals[len(goals) // 2], mean, least, most, mean, 1.0))
    return found


def draw_families(rows: list[Row], path: Path) -> None:
    """Writes an SVG with a line for each family, from its least ratio to its greatest."""
    save([families(rows)], path, "time / CPU's time: mean, least and greatest", FEW_WIDTH, "log")
