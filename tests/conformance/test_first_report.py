# tests/conformance/test_first_report.py: the reports in docs/conformance are whole, and their pages name each failure.
from __future__ import annotations

import collections
import re
from types import SimpleNamespace

import pytest

from sandbox import ROOT
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.report import page as report
from torch_conformance.report import schema

FOLDER = ROOT / "docs/generated/conformance"
# Layouts and refusals have a report of their own.
EARLIER = sorted({a for of in cases.ASPECTS.values() for a in of} - {"layouts", "refusals"})
FIVE = ["float32", "int64", "bool", "bfloat16", "float16"]
STEPS = {"dtypes": ["float32"], "aspects": ["forward", "backward", "step"]}
# Page, results, what was chosen, the device's label.
REPORTS = [
    (
        "README.md",
        "graft-host.json.gz",
        {"dtypes": ["float32"], "aspects": EARLIER},
        "graft on host",
    ),
    (
        "layouts.md",
        "graft-layouts.json.gz",
        {"suites": ["op"], "aspects": ["layouts", "refusals"]},
        "graft on host",
    ),
    (
        "opencl.md",
        "graft-opencl.json.gz",
        {"suites": ["op"], "dtypes": FIVE, "aspects": ["forward", "backward"]},
        "graft on opencl",
    ),
    ("ve.md", "ve-veda.json.gz", STEPS, "ve over veda, emulated card"),
    ("ve-host.md", "ve-host.json.gz", STEPS, "ve on host"),
]


@pytest.fixture(scope="module", params=REPORTS, ids=lambda row: row[1])
def told(request):
    page, results, chosen, label = request.param
    found = schema.read(FOLDER / results)
    return SimpleNamespace(
        page=(FOLDER / page).read_text(), found=found, chosen=chosen, label=label
    )


def test_its_cells_are_those_of_the_databases(told):
    listed = cases.select(**told.chosen)
    assert [Cell(*(c[name] for name in Cell._fields)) for c in told.found["cells"]] == listed
    assert told.found["complete"]


def test_the_page_has_its_counts(told):
    table = re.search(r"^\| \w+ \| aspect \| pass .*\n\|-.*\n((?:\|.*\n)+)", told.page, re.M)
    first, second, *statuses = re.findall(r"\w+", table[0].splitlines()[0])
    counts = collections.Counter((c[first], c[second], c["status"]) for c in told.found["cells"])
    shown = {
        (one, aspect, status): int(number)
        for one, aspect, *numbers in (re.findall(r"\w+", row) for row in table[1].splitlines())
        for status, number in zip(statuses, numbers, strict=True)
    }
    assert {key: number for key, number in shown.items() if number} == dict(counts)


def test_the_page_names_every_failure(told):
    red = {c["entry"] for c in told.found["cells"] if c["status"] in schema.BAD}
    reasons = told.page[told.page.index("## What fails") :]
    assert red == set(re.findall(r"`([\w.]+)`", reasons)) & set().union(
        *(cases.entries(suite) for suite in cases.SUITES)
    )


def test_its_page_can_be_made(told, tmp_path):
    report.write_page(told.found, tmp_path / "report.html")
    assert told.label in (tmp_path / "report.html").read_text()
