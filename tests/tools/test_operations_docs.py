"""The page of graft.ops says what the vocabulary has, and version 1 of it stays."""

from __future__ import annotations

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
