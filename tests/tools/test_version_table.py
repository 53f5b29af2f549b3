# tests/tools/test_version_table.py: the table of torch versions keeps what was not run, and takes what was.
from __future__ import annotations

import pytest

import test_versions as versions

pytestmark = pytest.mark.every_run

PAGE = versions.PAGE.read_text()
TABLE = versions.MARK.search(PAGE)


def test_without_results_the_table_stays() -> None:
    assert TABLE is not None
    assert versions.table({}, PAGE) + "\n" == TABLE[2]
    cells = versions.stated(PAGE)["3.11", "2.13.0+cpu"]
    assert set(cells) == {"Python", "torch", *versions.STEPS, "on"}


def test_results_take_their_cells_and_new_versions_their_place() -> None:
    doctor = {"holds": False, "seconds": 1, "says": "raises", "wheel": "abc"}
    record = {
        "3.11": {"2.13.0": {"torch": "2.13.0+cpu", "date": "2030-01-02", "doctor": doctor}},
        "3.9": {"2.14.9": {"torch": "2.14.9", "date": "2030-01-03", "demos": doctor | {"holds": True}}},
    }  # fmt: skip
    rows = versions.table(record, PAGE).splitlines()[2:]
    assert [row.split(" | ")[:2] for row in rows][:2] == [
        ["| 3.9", "2.14.9"],
        ["| 3.11", "2.13.0+cpu"],
    ]
    assert rows[0].count("not run") == len(versions.STEPS) - 1
    assert "| **fails:** raises |" in rows[1]
    assert rows[1].endswith("| 2030-01-02 |")
    assert "3 of 3 hold" in rows[1]
    assert len(rows) == len(versions.stated(PAGE)) + 1
