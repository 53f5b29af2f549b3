# conformance/tests/report/test_schema.py: a results file that cannot be read is named, with what is wrong and what to do.
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import synthetic
from torch_conformance.report import schema


def test_results_are_read_back(tmp_path: Path) -> None:
    results = synthetic.results(entries=5)
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results))
    assert schema.read(path) == results


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"schema": "torch-conformance/1", "cel', "is not JSON"),
        ("", "is not JSON"),
        ("[]", "expected schema 'torch-conformance/1', found None"),
        ('{"schema": "torch-conformance/2"}', "found 'torch-conformance/2'"),
        ('{"schema": "torch-conformance/1"}', "'device' is missing"),
        ("\udcff\udcfe", "is not JSON"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(schema.ResultsError) as error:
        schema.read(path)
    assert str(path) in str(error.value)
    assert expected in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(schema.ResultsError, match=r"absent.json cannot be read: No such file"):
        schema.read(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"status": "passed"}, "cell 7: op.entry_00001 has status 'passed'"),
        ({"samples": "12"}, "cell 7: 'samples' must be int, found str"),
        ({"native": "yes"}, "cell 7: 'native' must be bool or NoneType, found str"),
        ({"dtype": None}, "cell 7: 'dtype' must be str, found NoneType"),
    ],
)
def test_a_wrong_cell_is_named(change: dict[str, Any], expected: str) -> None:
    results = synthetic.results(entries=3)
    results["cells"] = [c for c in results["cells"] if c["entry"] == "op.entry_00001"]
    results["cells"][7].update(change)
    with pytest.raises(schema.ResultsError) as error:
        schema.check(results, "here.json")
    assert f"here.json: {expected}" in str(error.value)
