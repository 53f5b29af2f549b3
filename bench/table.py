"""A bench whose rows fill one table of medians, one page and one chart, and its command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

import chart
import medians
import report
from pairs import Row

Show = Callable[[Row], None]


@dataclass(frozen=True)
class Table:
    name: str  # of the table of medians
    page: Path
    sides: tuple[str, str]  # the two of each row, as the machine's facts name them
    scale: str  # of the chart: "linear" or "log"

    def rows(self) -> list[Row]:
        """The rows that the table of medians has."""
        return [one.row for one in medians.read(self.name)]

    def untouched(self, pattern: str) -> list[medians.Median]:
        """What the table of medians has of other cases, where a pattern measures a part."""
        return [
            one for one in medians.read(self.name)
            if pattern and not re.search(pattern, one.row.name)
        ]  # fmt: skip

    def text(self) -> str:
        """Their table, as it stands on the page."""
        text = report.markdown(*medians.published(self.name, self.sides))
        return text.replace("CPU (min)", "beside (min)")

    def draw(self, path: Path) -> None:
        ratios = [row for row in self.rows() if row.unit == "ratio"]
        chart.save([ratios], path, "time / the other side's time", chart.FEW_WIDTH, self.scale)

    def publish(self) -> None:
        self.page.write_text(report.put_between(self.page.read_text(), self.text()))
        self.draw(self.page.with_suffix(".svg"))

    def run(
        self, parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace, Show], None]
    ) -> int:
        """Reads the command line, measures, keeps what was seen, and publishes if that is asked for."""
        options = parser.parse_args()
        if options.from_medians:
            self.publish()
            return 0
        facts = report.machine(options.threads, *self.sides)
        rows: list[Row] = []

        def show(row: Row) -> None:
            rows.append(row)
            print("  " + "  ".join(report.cells(row)), flush=True)
            report.write_json(medians.RAW / f"{self.name}.json", rows, facts)

        measure(options, show)
        fresh = medians.stamped(rows, facts)
        if options.publish:
            medians.write(self.name, self.untouched(options.pattern) + fresh)
            self.publish()
        print(report.summary(rows, medians.facts(fresh, *self.sides)))
        return 0


def command_line(description: str, pattern: str) -> argparse.ArgumentParser:
    """The options that such benches share. pattern: what the regular expression is on."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("pattern", nargs="?", default="", help=f"regular expression on {pattern}")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--publish", action="store_true", help="put the medians into docs/")
    parser.add_argument("--from-medians", action="store_true",
                        help="write the page again from the table of medians, measure nothing")  # fmt: skip
    return parser
