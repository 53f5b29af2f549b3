# tests/tools/test_develop_pages.py: pages that say how to add something name what is there, all of it.
from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("add-*.md"), ROOT / "docs/drivers/changelog.md"])
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
    headers = "passes/passes.h", "grouping/grouping.h"
    header = "\n".join((ROOT / "src/compiler" / name).read_text() for name in headers)
    declared = set(re.findall(r"^int (\w+)\(Graph& graph\);", header, re.M))
    page = (ROOT / "docs/develop/compiler-ir.md").read_text()
    table = page[page.index("## The passes") :]
    rows = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    apart = set(re.findall(r"^`(\w+)` \(`layout_passes`\)", table, re.M))
    assert rows | apart == declared
    order = (ROOT / "src/compiler/passes/pass.cpp").read_text()
    assert set(re.findall(r'\{"(\w+)", \w+\}', order)) == declared
    assert set(re.findall(r'\{"\w+", (\w+)\}', order)) == declared


def files_named(page: str) -> set[str]:
    """The files of a driver that its README's table names: `file`, and `folder/`: `file`, `file`."""
    table = page[page.index("| file | noun |") :].split("\n\n")[0]
    found = set()
    for cell in re.findall(r"^\| (`[^|]*?) \|", table, re.M):
        folder = re.match(r"`(\w+/)`: ", cell)
        names = re.findall(r"`(\w+)`", cell)
        found |= {f"{folder[1] if folder else ''}{name}" for name in names}
    return found


@pytest.mark.parametrize("driver", ["host", "opencl"])
def test_a_drivers_readme_names_its_files(driver: str) -> None:
    folder = ROOT / "drivers" / driver
    sources = [path for path in folder.rglob("*") if path.suffix in (".cpp", ".h")]
    there = {str(path.relative_to(folder).with_suffix("")) for path in sources}
    assert files_named((folder / "README.md").read_text()) == there


def test_libraries_that_pages_name_are_built() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "drivers").rglob("*.md"),
             *(ROOT / "src").rglob("*.md")]  # fmt: skip
    named = {name for page in pages for name in re.findall(r"\blibgraft\w*\.so", page.read_text())}
    assert named == {"libgraft.so"}
    assert "add_library(graft SHARED" in (ROOT / "src/CMakeLists.txt").read_text()


def test_dependencies_name_the_files_that_write_json() -> None:
    page = (ROOT / "docs/develop/dependencies.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| nlohmann-json |"))
    sources = [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "src").rglob("*.h"),
               *(ROOT / "drivers").rglob("*.cpp")]  # fmt: skip
    users = {str(path.relative_to(ROOT)) for path in sources if "nlohmann/" in path.read_text()}
    assert set(re.findall(r"`(src/[\w./]+|drivers/[\w./]+)`", row)) == users


def test_one_place_chooses_shuffles_and_one_writes_them() -> None:
    """As docs/develop/kernels.md says."""
    kernels = [*(ROOT / "src/kernels").rglob("*.cpp"), *(ROOT / "src/kernels").rglob("*.h")]
    chosen = {path.name for path in kernels if "GRAFT_FEATURE_SHUFFLES" in path.read_text()}
    written = {path.name for path in kernels if re.search(r"\b\w+\.shuffle\(", path.read_text())}
    page = (ROOT / "docs/develop/kernels.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| sub-groups that exchange"))
    assert chosen == {"lanes.h"}
    assert written == {"group_fold.cpp"}
    assert set(re.findall(r"`(?:[\w/]*/)?(\w+\.(?:h|cpp))`", row)) == chosen | written
