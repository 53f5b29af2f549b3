# conformance/torch_conformance/report/site.py: makes a static site out of a folder of results: devices, trend, reasons.
"""torch-conformance site FOLDER --out SITE reads every results.json and history*.jsonl below FOLDER."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from torch_conformance.report import history, schema, shards, trend
from torch_conformance.report.page import dtype_order, fill, style, write_page

RAN = ("native", "fallback", "not native", "not proven")
STEPS = ((1.0, "all"), (0.99, "most"), (0.9, "many"), (0.0, "few"))  # colours of shares


class Run(NamedTuple):
    """A run, newest last within its device; page is "" when only the history knows it."""

    row: dict[str, Any]
    page: str

    @property
    def total(self) -> int:
        return sum(self.row["counts"].values())

    @property
    def bad(self) -> int:
        return sum(self.row["counts"].get(status, 0) for status in schema.BAD)

    @property
    def passed(self) -> int:
        return int(self.row["counts"].get("pass", 0))

    @property
    def pass_share(self) -> float | None:
        judged = self.total - self.row["counts"].get("skip", 0)
        return self.passed / judged if judged else None

    def ran_share(self, how: str) -> float | None:
        return self.row["ran"].get(how, 0) / self.passed if self.passed else None

    @property
    def day(self) -> str:
        return str(self.row["started"]).replace("T", " ").replace("Z", "")[:16]


def collect(folder: Path, out: Path) -> dict[str, list[Run]]:
    """The runs of each device, and a page of each run under out/runs."""
    found: dict[Any, Run] = {}
    pages: set[str] = set()
    for path in sorted(folder.rglob("history*.jsonl")):
        for row in history.read(path):
            found[history.key(row)] = Run(row, "")
    for results in _results(folder, out):
        row = history.row(results)
        name = re.sub(r"[^A-Za-z0-9]+", "-", " ".join(map(str, history.key(row)))).strip("-")
        page = f"runs/{name.lower()}.html"
        while page in pages:  # of labels that differ in signs only
            page = page.removesuffix(".html") + "-2.html"
        pages.add(page)
        (out / "runs").mkdir(parents=True, exist_ok=True)
        write_page(results, out / page)
        found[history.key(row)] = Run(row, page)
    if not found:
        raise schema.ResultsError(
            f"{folder} holds no results.json and no history*.jsonl: give the folder in which the "
            "runs lie, each in a folder of its own."
        )
    devices: dict[str, list[Run]] = {}
    for identity in sorted(found, key=lambda key: (key[0], key[1:])):
        devices.setdefault(identity[0], []).append(found[identity])
    return devices


def _results(folder: Path, out: Path) -> Iterator[dict[str, Any]]:
    """Whole runs, one at a time in memory, then those that were run in parts."""
    parts = []
    for path in sorted(folder.rglob("results.json")):
        if out in path.parents:
            continue
        results = schema.read(path)
        if results["shard"] == [1, 1]:
            yield results
        else:
            parts.append(results)
    yield from shards.joined(parts)


def index(devices: dict[str, list[Run]]) -> str:
    runs = [run for line in devices.values() for run in line]
    newest = max(run.day for run in runs)
    return fill(
        "site.html",
        STYLE=style(),
        SUMMARY=f"{len(devices)} devices, {len(runs)} runs, the newest of {newest} UTC",
        TABLE=_side_by_side({name: line[-1] for name, line in devices.items()}, devices),
        CHARTS="".join(_chart(name, line) for name, line in devices.items()),
        SKIPS=_skips({name: line[-1] for name, line in devices.items()}),
        RUNS="".join(_runs(name, line) for name, line in devices.items()),
    )


def _side_by_side(newest: dict[str, Run], devices: dict[str, list[Run]]) -> str:
    runs = list(newest.values())
    table = _Table(["", *(_link(run, "", escape(name)) for name, run in newest.items())], "even")
    table.add("newest run, UTC", [run.day for run in runs])
    for field in ("hardware", "torch", "package"):
        table.add(field, [escape(str(run.row.get(field, ""))) for run in runs])
    table.add("options", [_options(run) for run in runs])
    table.add("verdict", [_verdict(run) for run in runs])
    table.add("pass share", [_share(run.pass_share, run, "") for run in runs])
    table.add(
        "its trend", [trend.spark(_points(devices[name], "pass")) or "one run" for name in newest]
    )
    table.group("of the passing cells")
    for how in RAN:
        table.add(how, [_plain(run.ran_share(how), run, f"ran={how}") for run in runs])
    table.group("cells")
    table.add("all", [f"{run.total:,}" for run in runs])
    for status in schema.STATUSES:
        counts = [run.row["counts"].get(status.name, 0) for run in runs]
        links = [_link(run, f"status={status.name}", f"{n:,}") if n else "0"
                 for run, n in zip(runs, counts, strict=True)]  # fmt: skip
        badge = f'<span class="badge s-{status.name}">{status.symbol}</span> {status.name}'
        table.add(badge, links)
    _groups(table, runs)
    return table.text()


def _groups(table: _Table, runs: list[Run]) -> None:
    """Pass shares per suite and dtype."""
    shares = [{(s, d): (good, n) for s, d, good, n in run.row["groups"]} for run in runs]
    keys = {key for one in shares for key in one}
    sizes: Counter[str] = Counter()
    for one in shares:
        for (suite, _), (_, judged) in one.items():
            sizes[suite] += judged
    for suite, _ in sizes.most_common():
        table.group(f"pass share, {escape(suite)}")
        for dtype in sorted((d for s, d in keys if s == suite), key=dtype_order):
            values = []
            for run, one in zip(runs, shares, strict=True):
                good, judged = one.get((suite, dtype), (0, 0))
                share = good / judged if judged else None
                values.append(_share(share, run, f"suite={suite}&dtype={dtype}"))
            table.add(escape(dtype), values)


class _Table:
    """A table whose first column names the rows."""

    def __init__(self, heads: list[str], look: str = "") -> None:
        self.width = len(heads)
        cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
        self.parts = [f'<table class="{look}"><thead><tr>{cells}</tr></thead><tbody>']

    def group(self, name: str) -> None:
        self.parts.append(f'<tr class="part"><th scope="rowgroup" colspan="{self.width}">{name}')

    def add(self, name: str, values: list[str]) -> None:
        cells = "".join(v if v.startswith("<td") else f"<td>{v}</td>" for v in values)
        self.parts.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')

    def text(self) -> str:
        return "".join(self.parts) + "</tbody></table>"


def _link(run: Run, filters: str, text: str) -> str:
    if not run.page:
        return text
    address = run.page + ("#" + filters.replace(" ", "+") if filters else "")
    return f'<a href="{escape(address)}">{text}</a>'


def _options(run: Run) -> str:
    given = run.row.get("options", {}).items()
    return escape(
        ", ".join(f"{name} {value}" for name, value in given if value and name != "label")
    )


def _plain(share: float | None, run: Run, filters: str) -> str:
    return "" if share is None else _link(run, filters, f"{share:.1%}")


def _share(share: float | None, run: Run, filters: str) -> str:
    """A cell of the table, coloured; the number says the same."""
    if share is None:
        return '<td class="share none">none</td>'
    step = next(name for least, name in STEPS if share >= least)
    text = "100%" if share == 1 else f"{min(share, 0.9999):.2%}"
    return f'<td class="share {step}">{_link(run, filters, text)}</td>'


def _verdict(run: Run) -> str:
    cut = "" if run.row["complete"] else ", interrupted"
    if run.bad:
        return f'<span class="bad">✗ {run.bad:,} bad{cut}</span>'
    return f'<span class="good">✓ green{cut}</span>'


def _points(line: list[Run], kind: str) -> list[trend.Point]:
    points = []
    for run in line:
        share = run.pass_share if kind == "pass" else run.ran_share(kind)
        text = "none" if share is None else f"{share:.2%}"
        title = f"{run.day}: {kind} {text} of {run.total:,} cells, {run.bad:,} bad"
        points.append(trend.Point(run.row["started"], share, title, run.page))
    return points


def _chart(name: str, line: list[Run]) -> str:
    lines = {kind: _points(line, kind) for kind in ("pass", "native")}
    if not any(p.share for p in lines["native"]):
        del lines["native"]
    drawn = trend.chart(lines, f"Shares of {name} over time")
    return f"<figure><figcaption>{escape(name)}</figcaption>{drawn}</figure>"


def _skips(newest: dict[str, Run]) -> str:
    counts = [dict(run.row["skips"]) for run in newest.values()]
    reasons = sorted(
        {r for one in counts for r in one}, key=lambda r: (-max(c.get(r, 0) for c in counts), r)
    )
    if not reasons:
        return "<p>No cell is skipped.</p>"
    table = _Table(["reason", *map(escape, newest)])
    for reason in reasons:
        table.add(escape(reason), [f"{c.get(reason, 0):,}" for c in counts])
    return table.text()


def _runs(name: str, line: list[Run]) -> str:
    table = _Table(["run, UTC", "torch", "package", "cells", "pass", "native", "verdict"])
    for run in reversed(line):
        row = run.row
        facts = [escape(row.get("torch", "")), escape(row.get("package", "")), f"{run.total:,}"]
        shares = [_plain(run.pass_share, run, ""), _plain(run.ran_share("native"), run, "")]
        table.add(_link(run, "", run.day), [*facts, *shares, _verdict(run)])
    return f"<details><summary>{escape(name)}: {len(line)} runs</summary>{table.text()}</details>"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="torch-conformance site", description="Makes a static site of many runs."
    )
    parser.add_argument("folder", type=Path, help="holds results.json and history*.jsonl files")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the site")
    options = parser.parse_args(arguments)
    out = options.out.resolve()
    try:
        if not options.folder.is_dir():
            raise schema.ResultsError(f"{options.folder} is no folder; give one with results.")
        devices = collect(options.folder.resolve(), out)
    except schema.ResultsError as error:
        print(f"torch-conformance site: {error}", file=sys.stderr)
        return 2
    (out / "index.html").write_text(index(devices), encoding="utf-8")
    print(f"{out / 'index.html'}: {len(devices)} devices, {sum(map(len, devices.values()))} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
