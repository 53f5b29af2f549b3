# conformance/torch_conformance/lint/command.py: `torch-conformance lint TREE`, which finds tests tied to CUDA.
"""Lists every place in a tree of tests that names CUDA, with the generic form; --fix writes the safe ones.

Needs no torch and no device: the files are parsed, never imported.
"""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torch_conformance.lint.edits import Finding, apply
from torch_conformance.lint.scan import MARK, scan

SCHEMA = "torch-conformance-lint/1"
UNREAD = "{path}:{line}: cannot be examined: {message}"


class Problem(NamedTuple):
    """A file that was not examined, or not mended, and why."""

    path: str
    line: int
    message: str


class Report:
    """What was found in a tree."""

    def __init__(self) -> None:
        self.files = 0
        self.fixed = 0
        self.findings: list[tuple[str, Finding]] = []
        self.problems: list[Problem] = []

    @property
    def clean(self) -> bool:
        return not self.findings and not self.problems


def sources(tree: Path) -> Iterator[Path]:
    """The Python files of a tree, in order; hidden folders and environments are left out."""
    if tree.is_file():
        yield tree
        return
    for folder, folders, names in os.walk(tree):
        inner = [f for f in sorted(folders) if not f.startswith(".") and f != "__pycache__"]
        folders[:] = [f for f in inner if not Path(folder, f, "pyvenv.cfg").exists()]
        for name in sorted(names):
            if name.endswith((".py", ".pyi")):
                yield Path(folder, name)


def _decoded(raw: bytes) -> tuple[bytes, str, bytes]:
    """The source in UTF-8, its encoding, and the mark of a byte order that it began with."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    return raw[len(mark) :].decode(encoding.replace("utf-8-sig", "utf-8")).encode(), encoding, mark


def _mended(source: bytes, findings: list[Finding]) -> tuple[bytes, list[Finding], int]:
    """Applies the safe edits until none is left; raises ValueError where one would break the file."""
    fixed = 0
    while any(f.edits for f in findings):
        source = apply(source, findings)
        try:
            remaining = scan(source)
        except SyntaxError as error:
            raise ValueError(f"--fix would break it, so it is left as it was: {error}") from error
        fixed += max(len(findings) - len(remaining), 0)
        if len(remaining) >= len(findings):
            break
        findings = remaining
    return source, findings, fixed


def _replace(path: Path, content: bytes) -> None:
    """Writes beside the file, then puts that in its place, so that no half file is ever seen."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, path.stat().st_mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def examine(path: Path, report: Report, fix: bool) -> None:
    report.files += 1
    shown = str(path)
    findings: list[Finding] = []
    try:
        source, encoding, mark = _decoded(path.read_bytes())
        findings = scan(source)
        if fix and any(f.edits for f in findings):
            mended, left, fixed = _mended(source, findings)
            _replace(path.resolve(), mark + mended.decode().encode(encoding.removesuffix("-sig")))
            findings = left
            report.fixed += fixed
    except (SyntaxError, ValueError, LookupError) as error:
        line = getattr(error, "lineno", None) or 1
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        report.problems.append(Problem(shown, line, text))
    except (RecursionError, MemoryError):
        report.problems.append(Problem(shown, 1, "the expressions are nested too deeply"))
    except OSError as error:
        report.problems.append(Problem(shown, 1, error.strerror or str(error)))
    report.findings += [(shown, finding) for finding in findings]


def as_json(report: Report) -> str:
    findings = [
        {"path": path, "line": f.line, "column": f.column, "what": f.what, "proposal": f.proposal,
         "fixable": bool(f.edits)}
        for path, f in report.findings
    ]  # fmt: skip
    whole = {"schema": SCHEMA, "files": report.files, "fixed": report.fixed, "findings": findings}
    return json.dumps({**whole, "unexamined": [p._asdict() for p in report.problems]}, indent=1)


def as_text(report: Report) -> Iterator[str]:
    for path, f in report.findings:
        safe = "  [--fix]" if f.edits else ""
        yield f"{path}:{f.line}:{f.column}: {f.what}\n    instead: {f.proposal}{safe}"
    for problem in report.problems:
        yield UNREAD.format(**problem._asdict())
    touched = len({path for path, _ in report.findings})
    safe_count = sum(bool(f.edits) for _, f in report.findings)
    tail = f", {safe_count} of them mended by --fix" if safe_count else ""
    done = f"; {report.fixed} mended" if report.fixed else ""
    unread = f"; {len(report.problems)} files could not be examined" if report.problems else ""
    yield f"{len(report.findings)} findings in {touched} of {report.files} files{tail}{done}{unread}"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="torch-conformance lint",
        description="Finds tests that are tied to CUDA and proposes the form for any device.",
        epilog=f"A line that ends in '{MARK}' is left alone. Exit status: 0 nothing found, "
        "1 findings or files that could not be examined, 2 wrong arguments.",
    )
    made.add_argument("tree", nargs="+", type=Path, help="folders or files of tests")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--fix", action="store_true", help="rewrite what can be rewritten safely")
    return made


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    report = Report()
    for tree in arguments.tree:
        if not tree.exists():
            parser().error(f"there is no '{tree}'; give a folder or a file of tests")
        for path in sources(tree):
            examine(path, report, arguments.fix)
    if not report.files:
        parser().error("no Python file there; give a folder that holds tests")
    for line in [as_json(report)] if arguments.json else as_text(report):
        print(line)
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
