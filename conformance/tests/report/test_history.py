# conformance/tests/report/test_history.py: one line for each run, added once, and read back or refused by its line.
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import synthetic
from torch_conformance.report import history, schema


def test_a_row_counts_what_the_cells_say() -> None:
    results = synthetic.results(entries=30, bad=0.1)
    kept, cells = history.row(results), results["cells"]
    assert kept["counts"] == Counter(c["status"] for c in cells)
    assert sum(kept["ran"].values()) == kept["counts"]["pass"]
    assert kept["ran"]["fallback"] == sum(bool(c["fallbacks"]) for c in cells)
    for suite, dtype, passed, judged in kept["groups"]:
        group = [c["status"] for c in cells if (c["suite"], c["dtype"]) == (suite, dtype)]
        assert passed == group.count("pass")
        assert judged == len(group) - group.count("skip")
    assert sum(count for _, count in kept["skips"]) == kept["counts"]["skip"]


def test_a_run_is_appended_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.jsonl"
    for day in (1, 2, 2):
        results = synthetic.results(entries=2, started=f"2026-11-0{day}T12:00:00Z")
        (tmp_path / "results.json").write_text(json.dumps(results))
        assert history.main([str(tmp_path / "results.json"), str(file)]) == 0
    assert "0 runs appended, 1 there already" in capsys.readouterr().out
    assert [row["started"][:10] for row in history.read(file)] == ["2026-11-01", "2026-11-02"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"schema": "torch-conf', "line 2 is not JSON"),
        ('{"schema": "other/3"}', "found 'other/3'"),
        ('{"schema": "torch-conformance-history/1"}', "'label' is missing"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, expected: str) -> None:
    file = tmp_path / "history.jsonl"
    history.append(file, history.row(synthetic.results(entries=2)))
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(schema.ResultsError) as error:
        history.read(file)
    assert f"{file}, line 2" in str(error.value)
    assert expected in str(error.value)


def test_a_broken_results_file_is_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_text("{")
    assert history.main([str(tmp_path / "results.json"), str(tmp_path / "history.jsonl")]) == 2
    assert str(tmp_path / "results.json") in capsys.readouterr().err
    assert not (tmp_path / "history.jsonl").exists()
