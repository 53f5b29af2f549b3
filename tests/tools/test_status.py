# tests/tools/test_status.py: docs/state.md is fresh, and each feature and promise names what is there.
from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import tomllib

import status_docs

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
LISTING = ROOT / "tests" / "expectations.toml"
ITEMS = 10  # of the issue that asked for the features, by their numbers in the data
DATA = tomllib.loads(status_docs.DATA.read_text())
PROMISES = [row for section in DATA["section"] for row in section["promise"]]
ROWS = [(area["title"], row) for area in DATA["area"] for row in area["rows"]]


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


@cache
def files_of_tests(root: Path) -> dict[str, Path]:
    """The files of tests, by their path below the root."""
    found = [*(root / "tests").rglob("test_*.py"), *(root / "tests").rglob("*_test.cpp")]
    return {str(path.relative_to(root)): path for path in found}


def fault(identity: str, root: Path, listed: list[str]) -> str | None:
    """What is wrong with the name of a test; None when it exists in one file and runs."""
    end, _, name = identity.rpartition("::")
    if end.startswith("Test"):  # a class, and no file
        end, name = "", identity
    outer, _, cls = end.partition("::")
    end, name = (outer, f"{cls}::{name}") if cls else (end, name)
    plain, _, parameter = name.removesuffix("]").partition("[")
    files = {path: defined_in(place) for path, place in files_of_tests(root).items()
             if not end or f"/{path}".endswith(f"/{end}")}  # fmt: skip
    if not files:
        return f"no file of tests ends with {end}"
    holding = [path for path, tests in files.items() if plain in tests]
    if len(holding) != 1:
        return f"{identity}: {holding or 'no file'} has such a test; name the end of one file"
    (file,) = holding
    tests, identity = files[file], f"{file}::{name}"
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


FEATURES = [pytest.param(row, id=f"{title}: {row['name']}") for title, row in ROWS]


@pytest.mark.parametrize("row", FEATURES)
def test_a_feature_has_a_test_that_runs(row: dict[str, object]) -> None:
    """What works is shown, and what is shown works or is said to differ."""
    state = status_docs.state_of(row)
    assert state.startswith(status_docs.STATES)
    named = row["tests"]
    assert isinstance(named, list)
    if state.startswith("works"):
        assert named or row.get("shown"), "nothing shows it"
    assert [wrong for one in named if (wrong := fault(one, ROOT, expected_to_fail()))] == []


def test_a_feature_stands_once() -> None:
    for area in DATA["area"]:
        names = [row["name"] for row in area["rows"]]
        assert sorted(set(names)) == sorted(names), area["title"]
    titles = [area["title"] for area in DATA["area"]]
    assert sorted(set(titles)) == sorted(titles)


def test_few_features_are_without_a_test() -> None:
    assert sum(len(row["tests"]) for _, row in ROWS) > 450
    assert {row["shown"] for _, row in ROWS if "shown" in row} == {
        "[the conformance report](generated/conformance/README.md)"}  # fmt: skip


@pytest.mark.parametrize("number", range(1, ITEMS + 1))
def test_every_item_has_features(number: int) -> None:
    assert [area for area in DATA["area"] if area.get("item") == number and area["rows"]]


def test_pages_are_fresh() -> None:
    script = ROOT / "tools" / "status_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", [pytest.param(row, id=row["what"][:60]) for row in PROMISES])
def test_a_promise_says_what_was_seen_of_which_command(row: dict[str, str]) -> None:
    allowed = {"what", "command", "verdict", "where", "commit", "date", "figures"}
    assert {"what", "command", "verdict", "date"} <= set(row) <= allowed
    assert row["verdict"] in status_docs.VERDICTS
    assert row.get("where", "tree") in status_docs.PLACES
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"])
    assert re.fullmatch(r"[0-9a-f]{7}", row.get("commit", "0000000"))
    if row["verdict"] != "open":
        assert row.get("commit") or row["where"] == "tree"
    for path in re.findall(
        r"(?<![\w./$-])(?:tests|tools|bench|examples|docs)/[\w./-]+", row["command"]
    ):
        assert (ROOT / path).exists(), path


def test_a_placeholder_that_names_nothing_is_told() -> None:
    for text in ("{all/no row}", "{nothing/tiny add}", "{score:nothing}"):
        with pytest.raises(ValueError, match="names no row"):
            status_docs.filled(text, DATA, status_docs.medians())


def test_figures_come_from_medians_and_reports() -> None:
    known = status_docs.medians()
    rows = known["ve"]
    assert status_docs.filled("{ve/tiny add: more than the device itself} µs", DATA, known) == (
        f"{float(next(r['median'] for r in rows if r['row'].startswith('tiny add:'))):.2f} µs")  # fmt: skip
    assert status_docs.filled("{score:distributed}", DATA, known).startswith("5 of 5 goals hold, 0")
    cells = status_docs.filled("{report:graft-host:cells}", DATA, known)
    assert int(cells.replace(",", "")) == sum(
        int(status_docs.report("graft-host", status).replace(",", "")) for status in ("pass", "skip"))  # fmt: skip


def test_the_readme_has_one_table() -> None:
    with pytest.raises(ValueError, match="status"):
        status_docs.readme("no marks", DATA)


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
        ("test_a.py::test_runs", None),
        ("TestGroup::test_inside", "name the end"),
        ("Suite.Runs", None),
        ("test_runs", "name the end"),
        ("no_such_test", "no file"),
        ("tests/test_d.py::test_runs[two]", None),
        ("tests/test_d.py::test_runs[two-three]", None),
        ("tests/test_a.py::TestGroup::test_inside", None),
        ("tests/a_test.cpp::Suite.Runs", None),
        ("tests/test_b.py::test_runs", "no file of tests ends with"),
        ("tests/test_a.py::test_gone", "no file has such a test"),
        ("tests/test_a.py::test_inside", "no file has such a test"),
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
