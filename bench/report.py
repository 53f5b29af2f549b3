"""Writes the rows: raw JSON with the machine's facts, a table, the table's place in a page."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from medians import score
from pairs import Row

TITLES = (
    "case",
    "goal",
    "measured",
    "95 % interval",
    "{device} (min)",
    "{against} (min)",
    "verdict",
)
FORMS = {
    "launches": "{:.0f}", "kernels": "{:.0f}", "count": "{:.0f}", "mean": "{:.2f}",
    "MiB": "{:.0f} MiB", "bytes": "{:.0f} B", "µs": "{:.3g} µs", "points": "{:.1f} %",
}  # fmt: skip
NAMES = {"cpu": "CPU", "graft": "device"}


def quantity(value: float, unit: str) -> str:
    if unit == "peak":
        return f"{value / 2**20:.1f} MiB"
    if unit in FORMS:
        return FORMS[unit].format(value)
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.0f} ns"


def cells(row: Row) -> tuple[str, ...]:
    sign = {"s": " s", "points": " points", "bytes": " B", "µs": " µs", "count": ""}.get(
        row.unit, "x"
    )
    return (
        row.name, f"≤ {row.goal:.2f}{sign}", f"{row.value:.2f}{sign}",
        f"{row.low:.2f} - {row.high:.2f}", quantity(row.device_min, row.unit),
        quantity(row.against_min, row.unit), row.verdict,
    )  # fmt: skip


def table(rows: list[Row], facts: dict[str, Any]) -> str:
    sides = {side: NAMES.get(facts[side], facts[side]) for side in ("device", "against")}
    lines = ["| " + " | ".join(TITLES).format(**sides) + " |", "|" + "---|" * len(TITLES)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines)


def summary(rows: list[Row], facts: dict[str, Any]) -> str:
    return (
        f"{score(rows)}. Medians of interleaved pairs, each side in its own process, "
        f"{facts['threads']} threads, torch {facts['torch']}, {facts['processor']}, "
        f"{facts['date']} at {facts['commit']}."
    )


def markdown(rows: list[Row], facts: dict[str, Any]) -> str:
    return f"{table(rows, facts)}\n\n{summary(rows, facts)}"


def machine(threads: int, device: str, against: str) -> dict[str, Any]:
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    return {
        "processor": model[1] if model else platform.processor(), "cores": os.cpu_count(),
        "threads": threads, "torch": torch.__version__, "python": platform.python_version(),
        "load": os.getloadavg()[0], "device": device, "against": against,
        "modes": {k: v for k, v in os.environ.items() if k.startswith(("GRAFT_", "OMP_"))},
    }  # fmt: skip


def write_json(path: Path, rows: list[Row], facts: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = [asdict(row) | {"verdict": row.verdict} for row in rows]
    path.write_text(json.dumps({"machine": facts, "rows": listed}, indent=1) + "\n")


def put_between(text: str, table: str, mark: str = "bench") -> str:
    """Returns the text with the table between <!-- mark --> and <!-- /mark -->."""
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
    changed, found = re.subn(pattern, lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.S)
    if found != 1:
        raise ValueError(f"expected one '<!-- {mark} -->' ... '<!-- /{mark} -->', found {found}")
    return changed
