# tests/tools/test_house_rules.py: a README reads as one.
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import house_rules as house
from source_scan import read_sources

BODY = "\nA *heap* has *two ends*, 3 * 4 and `*a *b`.\n"


def findings(root: Path, text: str) -> list[str]:
    path = "src/kernels/sort/README.md"
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text(text)
    tree = SimpleNamespace(paths=[path], sources=read_sources(root, [path]))
    return [found.text for found in house.readmes(tree)]


def test_a_good_one(tmp_path: Path) -> None:
    assert not findings(tmp_path, f"# sort: orders\n{BODY}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"#sort : orders\n{BODY}", "no heading"),
        (BODY, "no heading"),
        ("# sort: orders\n\nA *heap *, and more.\n", "blank before"),
    ],
)
def test_what_a_formatter_of_another_language_leaves(text: str, told: str, tmp_path: Path) -> None:
    assert [told in one for one in findings(tmp_path, text)] == [True]
