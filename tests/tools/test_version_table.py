# tests/tools/test_version_table.py: the table of torch versions keeps what was not run, and takes what was.
from __future__ import annotations

import test_versions as versions

PAGE = versions.PAGE.read_text()
TABLE = versions.MARK.search(PAGE)


def test_without_results_the_table_stays() -> None:
    assert TABLE is not None
    assert versions.table({}, PAGE) + "\n" == TABLE[2]
    assert set(versions.stated(PAGE)["2.13.0+cpu"]) == {"torch", *versions.STEPS, "on"}


def test_results_take_their_cells_and_new_versions_their_place() -> None:
    doctor = {"holds": False, "seconds": 1, "says": "raises", "wheel": "abc"}
    record = {
        "2.13.0": {"torch": "2.13.0+cpu", "date": "2030-01-02", "doctor": doctor},
        "2.14.9": {"torch": "2.14.9", "date": "2030-01-03", "demos": doctor | {"holds": True}},
    }
    rows = versions.table(record, PAGE).splitlines()[2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows][:3] == [
        "2.13.0+cpu", "2.14.1+cu130", "2.14.9"]  # fmt: skip
    assert "| **fails:** raises |" in rows[0]
    assert rows[0].endswith("| 2030-01-02 |")
    assert "3 of 3 hold" in rows[0]
    assert rows[2].count("not run") == len(versions.STEPS) - 1
