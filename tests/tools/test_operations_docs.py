"""The page of graft.ops says what the vocabulary has, and version 1 of it stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import operations_docs

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
FROZEN = ROOT / "tests/kernels/operations_version_1.txt"


def test_the_page_is_the_vocabulary(monkeypatch):
    monkeypatch.setattr("sys.argv", ["operations_docs.py", "--check"])
    assert operations_docs.main() == 0


def test_version_1_stays():
    lost = set(FROZEN.read_text().splitlines()) - set(operations_docs.frozen())
    assert not lost, "drivers rely on these: give a changed operator a new name"


def test_names_are_unique():
    names = [one.name for one in operations_docs.operators()]
    names += [row[0] for row in operations_docs.rows()]
    assert len(names) == len(set(names))


# Kernels that operators of the vocabulary are made of, and what is no operator.
WITHIN = {
    "launch/assertion": "raises what a kernel found",
    "launch/error_record": "raises what a kernel found",
    "matmul/complex_matmul": "of matmul",
    "pointwise/list": "of the op table's rows",
    "pointwise/pointwise": "of the op table's rows",
    "resample/resample": "of interpolate, pad, unfold and averages",
    "tuning/tile_tuning": "times tiles",
}


def test_every_kernel_of_the_library_is_offered():
    kernels = ROOT / "src/kernels"
    queued = re.compile(r"^GRAFT_EXPORT [\w:<> ]+\(Stream& stream", re.M)
    headers = {
        str(path.relative_to(kernels).with_suffix(""))
        for path in kernels.glob("*/*.h")
        if queued.search(path.read_text())
    }
    named = {one.header for one in operations_docs.operators()}
    assert len(headers & named) > 30
    assert headers - named - WITHIN.keys() == set(), "name them in operators.def"
    assert WITHIN.keys() - (headers - named) == set(), "these are offered or gone"
