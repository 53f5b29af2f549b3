# tools/setting_rules.py: the rules of environment variables, for check_design: each is in the table, each row is read.
"""A read is getenv, or a function of the same file that hands its parameter to getenv; in Python os.environ and
os.getenv. The name is a literal or a constant of the file. The commands of python/torch_graft/cli show what others
read, so they may read every variable of the table."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from source_scan import Finding, Source, Tree

TABLE = "python/torch_graft/cli/settings.json"
SHOWN = "python/torch_graft/cli/"
PREFIX = "GRAFT_"
CORE = ("src/runtime/", "src/codegen/", "src/kernels/", "src/compiler/", "src/deploy/")
BINDING = ("src/torch/", "python/torch_graft/")
CHECKED = ("src/", "include/", "drivers/", "python/")  # others may set variables for their own use
_NAMED = re.compile(r'\bgetenv\(\s*"(\w+)"')
_BY_WORD = re.compile(r'\bgetenv\(\s*(?!")([^;]*?)\s*\)')
_CONSTANT = re.compile(r'\bchar\s*\*\s*(?:const\s+)?(\w+)\s*=\s*"(\w+)"')
_CMAKE = re.compile(r"\$ENV\{(\w+)\}")


class Read(NamedTuple):
    path: str
    line: int
    name: str  # "" where the text does not say which variable is read


def rows(text: str, table: str = "ours") -> list[list[str]]:
    """The rows of a table of the file: name, readers, values, default, meaning and perhaps a page."""
    return list(json.loads(text)[table])


def readers(row: list[str]) -> list[str]:
    return row[1].split(", ")


def reads(source: Source) -> Iterator[Read]:
    if source.is_c:
        yield from _reads_of_c(source)
    elif source.is_python:
        yield from _reads_of_python(source)
    elif source.name.suffix == ".cmake" or source.name.name == "CMakeLists.txt":
        for found in _CMAKE.finditer(source.text):
            yield Read(source.path, _line(source.text, found.start()), found[1])


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _reads_of_c(source: Source) -> Iterator[Read]:
    text = source.text
    constants = dict(_CONSTANT.findall(text))
    for found in _NAMED.finditer(text):
        yield Read(source.path, _line(text, found.start()), found[1])
    for found in _BY_WORD.finditer(text):
        word, line = found[1], _line(text, found.start())
        if word in constants:
            yield Read(source.path, line, constants[word])
            continue
        called = _function_of(text[: found.start()], word)
        calls = list(re.finditer(rf'\b{called}\(\s*"(\w+)"', text)) if called else []
        for call in calls:
            yield Read(source.path, _line(text, call.start()), call[1])
        if not calls:
            yield Read(source.path, line, "")


def _function_of(before: str, parameter: str) -> str | None:
    """The function or lambda whose parameter getenv gets."""
    heads = re.findall(
        rf"(\w+)(?:\s*=\s*\[[^\]]*\]\s*)?\(const char\s*\*\s*{re.escape(parameter)}\b", before
    )
    return heads[-1] if heads else None


def _reads_of_python(source: Source) -> Iterator[Read]:
    constants = {
        ast.unparse(node.targets[0]): str(node.value.value)
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(source.tree):
        key = _key(node)
        if isinstance(key, ast.Constant):
            yield Read(source.path, key.lineno, str(key.value))
        elif isinstance(key, ast.Name) and key.id in constants:
            yield Read(source.path, key.lineno, constants[key.id])


def _key(node: ast.AST) -> ast.expr | None:
    """What of the environment a node reads."""
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        return node.args[0] if called in ("os.environ.get", "os.getenv") else None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.slice if ast.unparse(node.value) == "os.environ" else None
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return node.left if ast.unparse(node.comparators[0]) == "os.environ" else None
    return None


TESTS = ("tests/", "conformance/tests/", "conftest.py")


def reader_of(path: str) -> str:
    """Who reads a variable that a file reads."""
    parts = path.split("/")
    if path.startswith(CORE):
        return "core"
    if path.startswith(BINDING):
        return "binding"
    if parts[0] == "drivers" and len(parts) > 2:
        return f"{parts[1]} driver"
    return "tests" if path.startswith(TESTS) else "build"


def declared_settings(tree: Tree) -> Iterator[Finding]:
    """Every variable of ours that code reads has a row, which names the reader."""
    table = next((s.text for s in tree.sources if s.path == TABLE), None)
    known = {row[0]: readers(row) for row in rows(table)} if table is not None else {}
    for source in (s for s in tree.sources if s.path.startswith(CHECKED)):
        for read in reads(source):
            if not read.name:
                text = "reads a variable whose name does not stand in this file: write it here"
                yield Finding(read.path, read.line, text)
            elif not read.name.startswith(PREFIX):
                continue
            elif read.name not in known:
                yield Finding(read.path, read.line, f"{read.name} has no row in {TABLE}")
            elif (who := reader_of(read.path)) not in known[read.name] and not read.path.startswith(
                SHOWN
            ):
                text = f"{read.name} is read by the {who}, which its row in {TABLE} does not say"
                yield Finding(read.path, read.line, text)


def read_settings(tree: Tree) -> Iterator[Finding]:
    """Each row is read by each of its readers, and stands once."""
    for source in (s for s in tree.sources if s.path == TABLE):
        found = {
            (read.name, reader_of(read.path))
            for one in tree.sources
            if not one.path.startswith(SHOWN)
            for read in reads(one)
        }
        table = rows(source.text)
        for name, count in Counter(row[0] for row in table).items():
            if count > 1:
                yield Finding(TABLE, _place(source, name), f"{name} stands {count} times")
        for row in table:
            for who in readers(row):
                if (row[0], who) not in found:
                    text = f"nothing of the {who} reads {row[0]}"
                    yield Finding(TABLE, _place(source, row[0]), text)


def _place(source: Source, name: str) -> int:
    return _line(source.text, source.text.index(f'"{name}"'))


SETTING_RULES = [declared_settings, read_settings]
