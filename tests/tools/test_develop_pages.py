# tests/tools/test_develop_pages.py: pages that say how to add something name what is there, all of it.
from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("add-*.md"), ROOT / "docs/drivers/abi-changelog.md"])
# Whole paths of this tree, without those that name a place to fill in.
PATH = re.compile(
    r"(?<![\w/.-])(?:src|tests|tools|python|drivers|include|cmake|bench|build)/[\w./-]+(?![\w<*])"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_paths_that_are_there(page: Path) -> None:
    paths = {path.rstrip(".") for path in PATH.findall(page.read_text())}
    assert paths
    made = {path for path in paths if path.startswith("build/") or path.endswith("/")}
    assert [path for path in sorted(paths - made) if not (ROOT / path).exists()] == []


def test_every_pass_has_a_row_and_a_place_in_an_order() -> None:
    header = (ROOT / "src/compiler/passes/passes.h").read_text()
    declared = set(re.findall(r"^int (\w+)\(Graph& graph\);", header, re.M))
    page = (ROOT / "docs/develop/compiler-ir.md").read_text()
    table = page[page.index("## The passes") :]
    rows = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    apart = set(re.findall(r"^`(\w+)` \(`layout_passes`\)", table, re.M))
    assert rows | apart == declared
    order = (ROOT / "src/compiler/passes/pass.cpp").read_text()
    assert set(re.findall(r'\{"(\w+)", \w+\}', order)) == declared
    assert set(re.findall(r'\{"\w+", (\w+)\}', order)) == declared
