# tests/planted/test_faults.py: each planted fault stands in the tree's text, and what is run for it is there.
from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import faults as tool
import verdict
from edited_tree import PLACE, Fault, planted, read_faults

pytestmark = pytest.mark.every_run

ROOT = Path(__file__).resolve().parents[2]
FAULTS = read_faults()
EACH = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.number))
GOOGLE = """\
[==========] Running 2 tests from 1 test suite.
[ RUN      ] All/Ops.Match/pow
x.cpp:3: Failure
[  FAILED  ] All/Ops.Match/pow, where GetParam() = 1 (2 ms)
[ RUN      ] All/Ops.Match/mul
[       OK ] All/Ops.Match/mul (0 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] All/Ops.Match/pow, where GetParam() = 1
"""
PYTEST = """\
tests/python/a/test_a.py::test_one[index add] PASSED                     [ 33%]
tests/python/a/test_a.py::test_two[index add] FAILED                     [ 66%]
tests/python/a/test_a.py::test_three ERROR                               [100%]
tests/python/a/test_a.py:7: in test_two
FAILED tests/python/a/test_a.py::test_two[index add] - assert 1 == 2
"""


@cache
def suites() -> set[str]:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))
    return set(re.findall(r"^TEST(?:_[FP])?\((\w+),", text, re.M))


def test_the_faults_are_those_of_the_table() -> None:
    page = (ROOT / "docs/develop/test-ids.md").read_text()
    table = page[page.index("Thirty others") :]
    rows = re.findall(r"^\| (.+?) \| `(\w+/[\w/]+\.\w+)` \|", table, re.M)
    assert [(fault.what, fault.file) for fault in FAULTS] == rows
    assert [fault.number for fault in FAULTS] == list(range(1, 31))


@EACH
def test_the_text_of_a_fault_stands_once_in_its_file(fault: Fault) -> None:
    text = (ROOT / "src" / fault.file).read_text()
    assert text.count(fault.right) == 1
    assert PLACE.search(fault.wrong)
    assert not PLACE.search(text)


@pytest.mark.parametrize("file", sorted({fault.file for fault in FAULTS}))
def test_a_file_takes_all_of_its_faults(file: str) -> None:
    own = [fault for fault in FAULTS if fault.file == file]
    text = planted((ROOT / "src" / file).read_text(), own)
    assert text.count('#include "chosen.h"') == 1
    assert text.index('#include "chosen.h"') < text.index("namespace graft")
    for fault in own:
        assert f"graft_planted({fault.number})" in text
        assert fault.right not in text or fault.right in fault.wrong


def test_a_fault_without_its_text_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"fault 1: expected .* found it 0 times"):
        planted("#include <vector>\n", FAULTS[:1])


@EACH
def test_the_tests_of_a_fault_are_there(fault: Fault) -> None:
    assert bool(fault.pytest) != bool(fault.program and fault.filter)
    if fault.pytest:
        path, _, name = fault.pytest[0].partition("::")
        assert f"def {name or 'test_'}" in (ROOT / path).read_text()
        return
    assert fault.program == f"{fault.file.split('/')[0]}_test"
    for one in fault.filter.split(":"):
        assert one.removeprefix("All/").removesuffix(".*") in suites()


def test_numbers_choose_faults() -> None:
    assert tool.chosen(FAULTS, "") == FAULTS
    assert [fault.number for fault in tool.chosen(FAULTS, "7,3")] == [3, 7]
    with pytest.raises(SystemExit, match="no fault has the number 31"):
        tool.chosen(FAULTS, "31")


def test_a_failure_is_read_with_its_name() -> None:
    ran = verdict.read(1, GOOGLE)
    assert ran == verdict.Ran(1, 1, ("All/Ops.Match/pow",), "All/Ops.Match/mul")
    assert ran.found_by == "All/Ops.Match/pow"
    ran = verdict.read(1, PYTEST)
    assert ran == verdict.Ran(1, 1, ("test_two[index add]", "test_three"), "test_three")
    assert ran.found_by == "test_two[index add] and 1 more"


def test_what_passes_or_does_not_run_finds_nothing() -> None:
    passed = verdict.read(0, "[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n")
    assert passed.good
    assert passed.found_by == ""
    for code, text in ((0, "[==========] Running 0 tests\n"), (4, "ERROR: file or directory not found: tests/a\n"),
                       (5, "no tests ran in 0.1s\n"), (127, "")):  # fmt: skip
        ran = verdict.read(code, text)
        assert not ran.good
        assert ran.found_by == ""


def test_crashes_and_limits_find_a_fault(tmp_path: Path) -> None:
    begin = "printf '[ RUN      ] A.B\\n'; "

    def ran(script: str, limit_s: float = 60) -> str:
        command = ["sh", "-c", begin + script]
        return verdict.run(command, tmp_path, {}, tmp_path / "log", limit_s).found_by

    assert ran("kill -SEGV $$") == "A.B (signal 11)"
    assert ran("exit 3") == "A.B (exit status 3)"
    assert ran("sleep 100", 1) == "A.B (ran past its limit)"
