# tools/source_scan.py: finds comments, functions and names in source text, for check_design.py.
from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

C_SUFFIXES = {".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".inc", ".cl"}
HEADER_SUFFIXES = {".h", ".hpp"}
CODE_FOLDERS = (
    "src/",
    "include/",
    "drivers/",
    "python/",
    "tests/",
    "tools/",
    "bench/",
    "examples/",
    "conformance/",
    "conftest.py",
)

TOKEN = re.compile(
    r"""(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL,
)
TYPE_HEAD = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(class|struct|union|enum)\b", re.DOTALL
)
NAMESPACE_HEAD = re.compile(r"^(?:inline\s+)?namespace\b|^extern\s*$")
BRACED_MEMBER = re.compile(r"\)[\w\s]*:(?!:).*[\w>]\s*$", re.DOTALL)


class Finding(NamedTuple):
    """A rule that a file breaks."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    length: int


@dataclass
class Source:
    """One tracked file: its path from the root of the repository, and its text."""

    path: str
    text: str

    @property
    def name(self) -> PurePosixPath:
        return PurePosixPath(self.path)

    @property
    def is_c(self) -> bool:
        return self.name.suffix in C_SUFFIXES

    @property
    def is_header(self) -> bool:
        return self.name.suffix in HEADER_SUFFIXES

    @property
    def is_python(self) -> bool:
        return self.name.suffix == ".py"

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def bare(self) -> str:
        """The text with comments and the inside of literals blanked, line breaks kept."""
        return TOKEN.sub(_blank, self.text) if self.is_c else self.text

    @cached_property
    def comment_lines(self) -> set[int]:
        """Numbers (from 1) of the lines that carry a comment; docstrings are not comments."""
        found: set[int] = set()
        if self.is_c:
            for match in TOKEN.finditer(self.text):
                if match.lastgroup in ("line", "block"):
                    first = self.text.count("\n", 0, match.start()) + 1
                    found.update(range(first, first + match.group().count("\n") + 1))
        else:
            found = {i for i, line in enumerate(self.lines, 1) if line.lstrip().startswith("#")}
        return found

    @cached_property
    def code_line_count(self) -> int:
        if self.is_c:
            return sum(1 for line in self.bare.splitlines() if line.strip())
        return sum(
            1
            for i, line in enumerate(self.lines, 1)
            if line.strip() and i not in self.comment_lines
        )

    @property
    def comment_share(self) -> float:
        written = sum(1 for line in self.lines if line.strip())
        return len(self.comment_lines) / written if written else 0.0

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def functions(self) -> list[Function]:
        if self.is_python:
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            return [
                Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
                for node in ast.walk(self.tree)
                if isinstance(node, kinds)
            ]
        return list(c_functions(self.bare)) if self.is_c else []


def _blank(match: re.Match[str]) -> str:
    """Keeps a literal's quotes and every line break (a macro's continued ones too)."""
    breaks = "".join(re.findall(r"\\?\n", match.group()))
    return breaks if match.lastgroup in ("line", "block") else '""' + breaks


def _without_directives(text: str) -> str:
    text = re.sub(r"\\\n", lambda _: "\x00", text)
    text = re.sub(r"^[ \t]*#[^\n]*", lambda m: "\x00" * m.group().count("\x00"), text, flags=re.M)
    return text.replace("\x00", "\n")


def _opens_function(head: str) -> bool:
    """Tells whether the text before a brace (outside functions) starts a function's body."""
    if TYPE_HEAD.match(head) and not re.search(r"\)\s*(const|noexcept|\s)*$", head):
        return False
    if re.search(r"\]\s*(\([^{}]*\))?[^;{}=]*$", head) and "=" in head:
        return True  # a named lambda
    flat = head.replace("operator=", "operator")
    while (shorter := re.sub(r"\([^()]*\)", "@", flat)) != flat:
        flat = shorter
    return "@" in flat and "=" not in re.sub(r"operator\W*", "", flat)


def _function_name(head: str) -> str:
    match = re.search(r"([~\w:]+|operator[^\w\s(]+)\s*\(", head)
    if match and re.fullmatch(r"TEST(_[FP])?", match.group(1)):
        return " ".join(head.split())
    return match.group(1) if match else "lambda"


def c_functions(bare: str) -> list[Function]:
    """Function bodies at namespace or class level; what is nested in a body counts to that body."""
    text = _without_directives(bare)
    found: list[Function] = []
    head_start, position = 0, 0
    while position < len(text):
        char = text[position]
        if char == "{":
            head = text[head_start:position].strip()
            plain = re.sub(r"\[\[[^\]]*\]\]|^\s*(public|private|protected)\s*:", "", head).strip()
            default = plain.endswith("=") and plain.count("(") > plain.count(")")  # a parameter's
            if default or (BRACED_MEMBER.search(plain) and _opens_function(plain)):
                end = closing(text, position)
                text = text[:position] + text[position : end + 1].translate(_HIDE) + text[end + 1 :]
                position = end + 1
                continue
            if NAMESPACE_HEAD.match(plain.replace('""', "").strip()):
                head_start = position + 1
            elif _opens_function(plain):
                end = closing(text, position)
                start = (
                    head_start
                    + len(text[head_start:position])
                    - len(text[head_start:position].lstrip())
                )
                first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
                found.append(Function(_function_name(plain), first, last - first + 1))
                position = head_start = end + 1
                continue
            elif TYPE_HEAD.match(plain):
                head_start = position + 1
            else:  # data, or a block that is none of ours
                position = head_start = closing(text, position) + 1
                continue
        elif char in ";}":
            head_start = position + 1
        position += 1
    return found


_HIDE = str.maketrans({"{": "(", "}": ")", ";": " "})


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens there closes; the last place if it does not."""
    depth = 0
    for match in re.compile({"(": r"[()]", "{": r"[{}]"}[text[opening]]).finditer(text, opening):
        depth += 1 if match.group() == text[opening] else -1
        if depth == 0:
            return match.start()
    return len(text) - 1


def read_sources(root: Path, paths: list[str]) -> list[Source]:
    """Reads the files that are text; a path that vanished from the disk is left out."""
    sources = []
    for path in paths:
        try:
            sources.append(Source(path, (root / path).read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    return sources


class Tree:
    """The tracked text files of one repository."""

    def __init__(self, root: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True
        )
        self.root = root
        self.paths = [path for path in listed.stdout.split("\0") if path]
        self.sources = read_sources(root, self.paths)
        self.code = [
            s for s in self.sources if s.path.startswith(CODE_FOLDERS) and (s.is_c or s.is_python)
        ]

    def drivers(self) -> list[str]:
        parts = [s.name.parts for s in self.sources if s.path.startswith("drivers/")]
        return sorted({p[1] for p in parts if len(p) > 2})


def root_name(node: ast.expr) -> str:
    """The name that an expression begins with; of an entry of sys.modules, the module's package."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
        key = node.slice
        text = key.value if isinstance(key, ast.Constant) else ast.unparse(key)
        return str(text).split(".")[0]
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that an import brings, and its top module; "" for one of the file's own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root = one.name.split(".")[0]
                yield one.asname or root, root
        elif isinstance(node, ast.ImportFrom):
            root = "" if node.level else (node.module or "").split(".")[0]
            yield from ((one.asname or one.name, root) for one in node.names)
