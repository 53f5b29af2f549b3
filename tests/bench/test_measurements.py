"""The pages that show `make bench`: both come from bench/results.json, the README has eight rows."""

import subprocess
import sys

import pytest

import cases
import chart
import measurements
import report
from sandbox import ROOT

RESULTS = ROOT / "bench" / "results.json"


def test_the_readme_has_eight_rows_that_the_bench_measures():
    measured = set(cases.CASES) | {f"{name}: peak memory" for name in cases.MEMORY}
    assert len(measurements.README_ROWS) == 8
    assert set(measurements.README_ROWS) <= measured


def test_pages_show_the_committed_results():
    tables = measurements.tables(*report.read_json(RESULTS))
    assert set(tables) == {ROOT / "README.md", ROOT / "docs/measurements/measurements.md"}
    for page, table in tables.items():
        text = page.read_text()
        assert report.put_between(text, table) == text, f"bench/run.py --from-results: {page.name}"


def test_a_row_that_was_not_measured_is_named():
    rows, facts = report.read_json(RESULTS)
    with pytest.raises(ValueError, match=r"gemm 1024.*make bench"):
        measurements.tables([row for row in rows if row.name != "gemm 1024"], facts)


def test_json_keeps_the_rows(tmp_path):
    rows, facts = report.read_json(RESULTS)
    report.write_json(tmp_path / "again.json", rows, facts)
    assert (tmp_path / "again.json").read_text() == RESULTS.read_text()


def test_the_picture_is_a_png(tmp_path):
    rows, _ = report.read_json(RESULTS)
    chart.draw_few(measurements.chosen(rows), tmp_path / "few.png")
    assert (tmp_path / "few.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("option", ["--publish", "--from-results"])
def test_a_part_is_not_published(option):
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "softmax", option]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 2
    assert "without a pattern" in ran.stderr
