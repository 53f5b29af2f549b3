# tests/tools/test_features.py: every feature on docs/develop/features.md has a test that exists and runs.
from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/develop/features.md"
COMPARISON = ROOT / "docs/use/parity.md"
STATES = ("works", "differs", "not possible", "not yet")
LISTING = ROOT / "tests" / "expectations.toml"
UNBUILT = "Not built yet"
ITEMS = 10  # of the issue that the page answers, by their numbers in its headings
IDS = re.compile(r"`([^`]*::[^`]*)`")


def sections(page: str) -> dict[str, dict[str, str]]:
    """The rows of each section's table: what is named, and the other column."""
    found: dict[str, dict[str, str]] = {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        title, body = part.split("\n", 1)
        rows = re.findall(r"^\| (?!feature)(.+?) \| (.+) \|$", body, re.M)
        assert len({name for name, _ in rows}) == len(rows), f"a feature twice in {title}"
        found[title] = dict(rows)
    return found


@cache
def defined_in(path: Path) -> dict[str, bool]:
    """The tests of a file, and whether each carries a mark that keeps it from counting."""
    text = path.read_text()
    if path.suffix == ".cpp":
        named = re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", text, re.M)
        return {f"{suite}.{name}": name.startswith("DISABLED_") for suite, name in named}
    found = {}
    for node in ast.parse(text).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for one in inner:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test"):
                marks = " ".join(ast.unparse(mark) for mark in one.decorator_list)
                found[prefix + one.name] = re.search(r"mark\.(skip|xfail)", marks) is not None
    return found


def spelled(parameter: str, text: str) -> bool:
    """Whether a file writes the name of a parameter, or each of the names joined in it."""
    return all(
        any(f"{quote}{name}{quote}" in text for quote in "'\"") for name in parameter.split("-")
    )


def fault(identity: str, root: Path, listed: list[str]) -> str | None:
    """What is wrong with the name of a test; None when it exists and runs."""
    file, _, name = identity.partition("::")
    if not (root / file).is_file():
        return f"{file} is not there"
    tests = defined_in(root / file)
    plain, _, parameter = name.removesuffix("]").partition("[")
    if plain not in tests:
        return f"{file} has no test {name}"
    if parameter and not spelled(parameter, (root / file).read_text()):
        return f"{file} has no parameter {parameter}"
    if tests[plain]:
        return f"{identity} is marked to be skipped or to fail"
    whole = f"{file}::{plain}"
    # All of a test is named, so none of its parameters may be listed; or one, and neither it nor all.
    stopping = [row for row in listed if row in (file, whole, identity) or
                (not parameter and row.startswith(f"{whole}["))]  # fmt: skip
    return f"{identity} is listed in {LISTING.name}" if stopping else None


def expected_to_fail() -> list[str]:
    """Without what holds for one driver other than the default one."""
    rows = tomllib.loads(LISTING.read_text()).get("expectation", [])
    return [row["test"] for row in rows if row.get("driver", "host") == "host"]


TABLES = sections(PAGE.read_text())
ROWS = [
    pytest.param(tests, id=f"{title}: {name}")
    for title, rows in TABLES.items()
    if title != UNBUILT
    for name, tests in rows.items()
]


@pytest.mark.parametrize("tests", ROWS)
def test_a_feature_has_a_test_that_runs(tests: str) -> None:
    named = IDS.findall(tests)
    assert named, "no test is named"
    assert [wrong for one in named if (wrong := fault(one, ROOT, expected_to_fail()))] == []


def test_what_is_not_built_names_no_test() -> None:
    assert not IDS.search(" ".join(TABLES.get(UNBUILT, {}).values()))


@pytest.mark.parametrize("number", range(1, ITEMS + 1))
def test_every_item_has_features(number: int) -> None:
    built = any(title.startswith(f"{number}. ") for title in TABLES)
    assert built or any(name.startswith(f"{number}. ") for name in TABLES.get(UNBUILT, {}))


def compared() -> list[tuple[str, str, str]]:
    """The behaviours on the page that compares with CUDA: name, state, tests."""
    lines = re.findall(r"^\|(?!-)(.+)\|$", COMPARISON.read_text(), re.M)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert {len(row) for row in rows} == {4}
    return [(row[0], row[2], row[3]) for row in rows if row[0] != "behaviour"]


def test_tests_named_in_the_comparison_run() -> None:
    named = [one for _, _, tests in compared() for one in IDS.findall(tests)]
    assert len(named) > 100
    whole = [f"tests/python/{one}" for one in named]
    assert [wrong for one in whole if (wrong := fault(one, ROOT, expected_to_fail()))] == []


def test_the_comparison_states_something_of_everything() -> None:
    """What works is shown, and what is shown works or is said to differ."""
    for behaviour, state, tests in compared():
        assert state.startswith(STATES), (behaviour, state)
        if state.startswith("works"):
            assert tests.strip(), behaviour


PLANTED = """
import pytest

@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_runs(name):
    pass

@pytest.mark.skip(reason="so it is")
def test_skips():
    pass

class TestGroup:
    def test_inside(self):
        pass
"""


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ("tests/test_a.py::test_runs", None),
        ("tests/test_d.py::test_runs[two]", None),
        ("tests/test_d.py::test_runs[two-three]", None),
        ("tests/test_a.py::TestGroup::test_inside", None),
        ("tests/a_test.cpp::Suite.Runs", None),
        ("tests/test_b.py::test_runs", "not there"),
        ("tests/test_a.py::test_gone", "no test"),
        ("tests/test_a.py::test_inside", "no test"),
        ("tests/test_a.py::test_skips", "marked"),
        ("tests/a_test.cpp::Suite.DISABLED_Runs", "marked"),
        ("tests/test_c.py::test_runs", "listed"),
        ("tests/test_d.py::test_runs", "listed"),
        ("tests/test_d.py::test_runs[one]", "listed"),
        ("tests/test_d.py::test_runs[four]", "no parameter"),
    ],
)
def test_wrong_rows_are_found(identity: str, expected: str | None, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("test_a.py", "test_c.py", "test_d.py"):
        (tmp_path / "tests" / name).write_text(PLANTED)
    cpp = "TEST(Suite, Runs) {}\nTEST_F(Suite, DISABLED_Runs) {}\n"
    (tmp_path / "tests" / "a_test.cpp").write_text(cpp)
    listed = ["tests/test_c.py", "tests/test_d.py::test_runs[one]"]
    found = fault(identity, tmp_path, listed)
    assert (found is None) if expected is None else (expected in str(found))


def test_a_table_is_read() -> None:
    page = "# P\n\n## 1. A\n\n| feature | tests |\n|---|---|\n| x | `a::b` |\n\n## Not built yet\n\n| feature | w |\n|---|---|\n| y | z |\n"
    assert sections(page) == {"1. A": {"x": "`a::b`"}, UNBUILT: {"y": "z"}}
