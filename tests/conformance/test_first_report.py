# tests/conformance/test_first_report.py: the committed summaries are whole, and their pages name each failure.
from __future__ import annotations

import collections
import re
from types import SimpleNamespace

import pytest

import conformance_summary
from sandbox import ROOT
from torch_conformance.cells import cases
from torch_conformance.cells.cases import Cell
from torch_conformance.report import page as report
from torch_conformance.report import schema

pytestmark = pytest.mark.every_run

FOLDER = ROOT / "docs/generated/conformance"
# Layouts and refusals have a report of their own.
EARLIER = sorted({a for of in cases.ASPECTS.values() for a in of} - {"layouts", "refusals"})
FIVE = ["float32", "int64", "bool", "bfloat16", "float16"]
STEPS = {"dtypes": ["float32"], "aspects": ["forward", "backward", "step"]}
# Page, summary, what was chosen, the device's label.
REPORTS = [
    (
        "README.md",
        "graft-host.toml",
        {"dtypes": ["float32"], "aspects": EARLIER},
        "graft on host",
    ),
    (
        "layouts.md",
        "graft-layouts.toml",
        {"suites": ["op"], "aspects": ["layouts", "refusals"]},
        "graft on host",
    ),
    (
        "opencl.md",
        "graft-opencl.toml",
        {"suites": ["op"], "dtypes": FIVE, "aspects": ["forward", "backward"]},
        "graft on opencl",
    ),
    ("ve.md", "ve-veda.toml", STEPS, "ve over veda, emulated card"),
    ("ve-host.md", "ve-host.toml", STEPS, "ve on host"),
]


@pytest.fixture(scope="module", params=REPORTS, ids=lambda row: row[1])
def told(request):
    page, name, chosen, label = request.param
    summary = conformance_summary.read(FOLDER / name)
    found = conformance_summary.results_of(summary)
    schema.check(found, name)
    return SimpleNamespace(page=(FOLDER / page).read_text(), path=FOLDER / name, summary=summary,
                           found=found, chosen=chosen, label=label)  # fmt: skip


def test_its_cells_are_those_of_the_databases(told):
    listed = cases.select(**told.chosen)
    found = [Cell(*(c[name] for name in Cell._fields)) for c in told.found["cells"]]
    assert sorted(found) == sorted(listed)
    assert told.summary["run"]["cells"] == len(listed)
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


def test_the_summary_counts_its_cells(told):
    counts = collections.Counter(
        (c["suite"], c["aspect"], c["status"]) for c in told.found["cells"]
    )
    stated = {
        (suite, aspect, status): number
        for suite, parts in told.summary["suites"].items()
        for aspect, numbers in parts["counts"].items()
        for status, number in numbers.items()
    }
    assert stated == dict(counts)


def test_the_page_has_its_date_and_samples(told):
    run = told.summary["run"]
    assert run["date"] in told.page
    assert f"{run['cells']:,} cells,\n" in told.page or f"{run['cells']:,} cells, " in told.page
    assert f"{run['samples']:,}" in told.page


def test_the_summary_is_small_text(told):
    assert told.path.stat().st_size <= 100_000
    assert told.path.read_text(encoding="utf-8").startswith("# docs/generated/conformance/")


def test_the_page_names_every_failure(told):
    red = {c["entry"] for c in told.found["cells"] if c["status"] in schema.BAD}
    reasons = told.page[told.page.index("## What fails") :]
    assert red == set(re.findall(r"`([\w.]+)`", reasons)) & set().union(
        *(cases.entries(suite) for suite in cases.SUITES)
    )


def test_its_page_can_be_made(told, tmp_path):
    report.write_page(told.found, tmp_path / "report.html")
    assert told.label in (tmp_path / "report.html").read_text()


def cell(entry, aspect, status="pass", **more):
    fields = {"suite": "op", "entry": entry, "dtype": "float32", "aspect": aspect, "status": status}
    fields |= {"samples": 2, "seconds": 1.0, "message": "", "reason": "", "fallbacks": {}}
    return fields | {"native": None} | more


def test_a_summary_tells_what_the_results_told(tmp_path):
    cells = [
        cell("abs", "forward", native=True),
        cell("abs", "backward", native=False),
        cell("add", "forward", fallbacks={"aten::add.out": 3}),
        cell("add", "backward", "fail", message='a "message"\nof two lines'),
        cell("eye", "forward", "skip", reason="random values: not compared; some samples left out: x; y"),
    ]  # fmt: skip
    results = {
        "schema": schema.SCHEMA, "device": {"name": "npu", "label": "npu", "torch": "2", "options": {}},
        "started": "2030-01-02T03:04:05Z", "seconds": 90.0, "complete": True, "shard": [1, 1],
        "cells": cells,
    }  # fmt: skip
    path = tmp_path / "npu.toml"
    made = conformance_summary.summarize(results, "abc1234")
    path.write_text(conformance_summary.text(made, path.name))
    summary = conformance_summary.read(path)
    assert summary["run"]["commit"] == "abc1234"
    assert (summary["run"]["samples"], summary["run"]["minutes"]) == (10, 1.5)
    assert summary["suites"]["op"]["cells"] == {"abs": "P d", "add": "c f", "eye": "- ."}
    assert [row["reason"] for row in summary["reasons"]] == [
        "random values: not compared", "some samples left out: x; y"]  # fmt: skip
    told = {(c["entry"], c["aspect"]): c for c in conformance_summary.results_of(summary)["cells"]}
    assert [told[c["entry"], c["aspect"]]["status"] for c in cells] == [c["status"] for c in cells]
    assert told["add", "backward"]["message"] == cells[3]["message"]
    assert set(told["add", "forward"]["fallbacks"]) == {"aten::add.out"}
    assert [told["abs", one]["native"] for one in ("forward", "backward")] == [True, False]


def test_results_of_another_schema_are_refused():
    with pytest.raises(ValueError, match=r"torch-conformance/1, found 'x/2'"):
        conformance_summary.summarize({"schema": "x/2"}, "abc1234")
