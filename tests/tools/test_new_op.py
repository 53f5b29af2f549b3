# tests/tools/test_new_op.py: a new elementwise operation, compiled or not, changes two files: done here as docs/develop/add-an-operator.md tells.
"""In a copy of the tree; the release build lends every object file but the two that change."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TABLE = "src/codegen/ops/op_table_activation.cpp"
REFERENCE = "tests/codegen/ops/op_reference_test.cpp"
STARTS = {TABLE: "const Op kRows[]", REFERENCE: "const Reference kReferences[]"}


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def release() -> Path:
    """The torch-free build of the tree as it is."""
    run("cmake", "--preset", "release", "-Wno-dev", cwd=ROOT)
    programs = ("codegen_test", "compiler_test")
    run("cmake", "--build", "--preset", "release", "--target", *programs, cwd=ROOT)
    return BUILD


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    copy = tmp_path / "graft"
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid")
    run("git", "init", "--quiet", cwd=copy)
    run("git", "add", "--all", cwd=copy)
    run("git", *identity, "commit", "--quiet", "--message", "before", cwd=copy)
    return copy


def documented_lines() -> dict[str, str]:
    """What the page adds to the table and to the references."""
    page = (ROOT / "docs/develop/add-an-operator.md").read_text()
    table, reference = re.findall(r'^ +(\{"softsign".*)$', page, re.MULTILINE)
    return {TABLE: table, REFERENCE: reference}


def insert(tree: Path, name: str, line: str) -> None:
    """Puts a line at the end of the file's table."""
    text = (tree / name).read_text()
    end = text.index("\n};\n", text.index(STARTS[name])) + 1
    (tree / name).write_text(f"{text[:end]}    {line}\n{text[end:]}")


def compiled(tree: Path, name: str) -> tuple[str, str]:
    """(the object in the release build, the copy's object)."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    found = next(entry for entry in entries if entry["file"] == str(ROOT / name))
    command = shlex.split(found["command"])
    place = command.index("-o") + 1
    old, command[place] = command[place], str(tree / (Path(name).name + ".o"))
    there = [word.replace(f"{ROOT}/src", f"{tree}/src").replace(f"{ROOT}/tests", f"{tree}/tests")
             for word in command]  # fmt: skip
    run(*there, cwd=BUILD)
    return old, command[place]


def outcome(
    tree: Path, objects: dict[str, str], name: str = "codegen_test"
) -> subprocess.CompletedProcess[str]:
    """Runs a program's tests of the row, linked with these objects in the place of the release's."""
    listed = run("ninja", "-t", "commands", f"tests/{name}", cwd=BUILD).splitlines()[-1]
    program = str(tree / name)
    for old, new in (objects | {f"-o tests/{name}": f"-o {program}"}).items():
        assert listed.count(f" {old} ") == 1
        listed = listed.replace(f" {old} ", f" {new} ")
    run("sh", "-c", listed, cwd=BUILD)
    wanted = "--gtest_filter=OpTable.*:OpReference.*:*softsign*"
    return subprocess.run([program, wanted], capture_output=True, text=True)


def test_two_files_make_an_operation(release: Path, tree: Path) -> None:
    lines = documented_lines()
    insert(tree, TABLE, lines[TABLE])
    row = compiled(tree, TABLE)
    alone = outcome(tree, dict([row]))
    assert alone.returncode != 0, "a row without a reference must not pass"
    assert "softsign" in alone.stdout

    insert(tree, REFERENCE, lines[REFERENCE])
    both = outcome(tree, dict([row, compiled(tree, REFERENCE)]))
    assert both.returncode == 0, both.stdout + both.stderr
    assert "FloatOps.MatchTheReference/softsign" in both.stdout
    fused = outcome(tree, dict([row]), "compiler_test")
    assert fused.returncode == 0, fused.stdout + fused.stderr
    assert "EveryOverload.IsFused/softsign_default" in fused.stdout
    changed = run("git", "diff", "--stat", cwd=tree).splitlines()
    assert [line.split("|")[0].strip() for line in changed[:-1]] == [TABLE, REFERENCE]
    assert "2 files changed, 2 insertions(+)" in changed[-1]
