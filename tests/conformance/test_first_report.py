# tests/conformance/test_first_report.py: the report in docs/conformance is whole, and its page names each failure.
from __future__ import annotations

import collections
import re

from sandbox import ROOT
from torch_graft.conformance import cases, report, schema
from torch_graft.conformance.cases import Cell

FOLDER = ROOT / "docs" / "conformance"
PAGE = (FOLDER / "README.md").read_text()
FOUND = schema.read(FOLDER / "graft-host.json.gz")


def test_its_cells_are_those_of_the_databases():
    listed = cases.select(dtypes=["float32"])
    assert [Cell(*(c[name] for name in Cell._fields)) for c in FOUND["cells"]] == listed
    assert FOUND["complete"]


def test_the_page_has_its_counts():
    counts = collections.Counter((c["suite"], c["aspect"], c["status"]) for c in FOUND["cells"])
    names = re.findall(r"\w+", next(line for line in PAGE.splitlines() if "| suite |" in line))
    rows = [
        re.findall(r"\w+", row) for row in re.findall(r"^\| (?:op|module|optim) .*", PAGE, re.M)
    ]
    shown = {
        (suite, aspect, status): int(number)
        for suite, aspect, *numbers in rows
        for status, number in zip(names[2:], numbers, strict=True)
    }
    assert {key: number for key, number in shown.items() if number} == dict(counts)


def test_the_page_names_every_failure():
    red = {c["entry"] for c in FOUND["cells"] if c["status"] in schema.BAD}
    reasons = PAGE[PAGE.index("## What fails") :]
    assert red == set(re.findall(r"`([\w.]+)`", reasons)) & set().union(
        *(cases.entries(suite) for suite in cases.SUITES)
    )


def test_its_page_can_be_made(tmp_path):
    report.write_page(FOUND, tmp_path / "report.html")
    assert "graft on host" in (tmp_path / "report.html").read_text()
