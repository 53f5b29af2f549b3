# conformance/tests/report/test_beside.py: two results are told apart by cells and by what they leave to the CPU.
from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import synthetic
from torch_conformance import __main__ as command


@pytest.fixture
def plain() -> dict[str, Any]:
    return synthetic.results(entries=6, bad=0, away=0)


def write(path: Path, results: dict[str, Any]) -> str:
    path.write_text(json.dumps(results))
    return str(path)


def beside(folder: Path, ours: dict[str, Any], other: dict[str, Any], *more: str) -> int:
    paths = write(folder / "ours.json", ours), write(folder / "other.json", other)
    return command.main(["beside", *paths, *more])


def test_equal_results_do_not_differ(tmp_path: Path, plain: dict[str, Any], capsys: Any) -> None:
    assert beside(tmp_path, plain, copy.deepcopy(plain)) == 0
    assert f"{len(plain['cells'])} cells of both, 0 differences" in capsys.readouterr().out


def test_each_difference_is_named(tmp_path: Path, plain: dict[str, Any], capsys: Any) -> None:
    ours, other = copy.deepcopy(plain), copy.deepcopy(plain)
    names = sorted({(c["suite"], c["entry"]) for c in plain["cells"]})
    red, here, there = (
        next(i for i, c in enumerate(plain["cells"]) if (c["suite"], c["entry"]) == name)
        for name in names[:3]
    )
    ours["cells"][red] |= {"status": "fail", "message": "greatest difference 0.25"}
    ours["cells"][here]["fallbacks"] = {"aten::add": 2}
    other["cells"][there]["fallbacks"] = {"aten::mul": 1}
    assert beside(tmp_path, ours, other) == 1
    told = capsys.readouterr().out
    before = plain["cells"][red]["status"]
    assert f"{names[0][1]}" in told
    assert f"fail, beside it {before}: greatest difference 0.25" in told
    assert f"{names[1][1]}: leaves aten::add to the CPU here alone" in told
    assert f"{names[2][1]}: leaves aten::mul to the CPU there alone" in told
    assert "3 differences" in told
    assert "CPU: 5, beside it 5" in told
    assert beside(tmp_path, ours, other, "--at-most", "3") == 0


def test_results_without_a_common_cell_are_no_comparison(
    tmp_path: Path, plain: dict[str, Any], capsys: Any
) -> None:
    assert beside(tmp_path, plain, plain | {"cells": []}) == 2
    assert "no cell in common" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, plain: dict[str, Any]) -> None:
    assert command.main(["beside", write(tmp_path / "a.json", plain), str(tmp_path / "b")]) == 2
