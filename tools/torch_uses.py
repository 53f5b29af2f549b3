# tools/torch_uses.py: which names of torch this tree relies on, for tools/torch-audit.
"""Read from where they stand: src/torch/version, the sources that register operators, the op table
and private_names.py of each Python package. None is listed here."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src/torch/dispatch"))

from our_operators import DEFINED, IMPLEMENTED, listed, minor  # type: ignore[import-not-found]

from source_scan import TOKEN
from torch_headers import INCLUDE

ROOT = Path(__file__).resolve().parents[1]
BINDING = ROOT / "src/torch"
SEAM = BINDING / "version"
LISTED = SEAM / "operators.json"
TABLES = (
    ROOT / "python/torch_graft/private_names.py",
    ROOT / "conformance/torch_conformance/private_names.py",
)

_USED = re.compile(r"\bat::native::(\w+(?:::\w+)*)")
_CALLED = re.compile(r"\bat::_ops::(\w+)")
_CUSTOM = re.compile(r'CustomOp<\s*"([\w:]+)"(?:,\s*"(\w+)")?>')
_DECLARED = re.compile(r"DECLARE_DISPATCH\(\s*\w+,\s*(\w+)\)")
_STUB = re.compile(r"\b(\w+_stub)\b")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define\b(?:.*\\\n)*.*$", re.MULTILINE)


class Use(NamedTuple):
    """where: file and line. headers: those that the file includes, of a name in C++."""

    name: str
    where: str
    headers: tuple[str, ...] = ()


def area_headers() -> list[Path]:
    """The headers of all minor versions: one area of torch each, those of operators in a folder."""
    return sorted(SEAM.glob("*.h")) + sorted((SEAM / "ops").glob("*.h"))


def minor_header(version: str) -> Path | None:
    """As src/torch/CMakeLists.txt chooses: the newest of version/minor that is not newer."""
    given = minor(version)
    found = [(minor(p.stem), p) for p in (SEAM / "minor").glob("*_*.h")]
    return max((one for one in found if one[0] <= given), default=(given, None))[1]


def seam(version: str) -> list[Path]:
    """The headers of the seam that a build for this version of torch takes."""
    own = minor_header(version)
    return area_headers() + ([own] if own else [])


def included(version: str) -> list[Use]:
    """The headers of torch that the seam includes."""
    every = [use for path in seam(version) for use in _matches(path, path.read_text(), INCLUDE)]
    return [use for use in every if use.name.startswith(("ATen/", "c10/", "torch/csrc/"))]


def native(version: str) -> list[Use]:
    """The names of at::native that the seam brings in, each once for its file."""
    found: dict[tuple[Path, str], Use] = {}
    for path in seam(version):
        text = _bare(path)
        headers = tuple(INCLUDE.findall(path.read_text()))
        own = set(_DECLARED.findall(text))
        for one in _USED.finditer(text):
            if one[1] not in own:
                use = Use(f"at::native::{one[1]}", _where(path, text, one.start()), headers)
                found.setdefault((path, one[1]), use)
    return list(found.values())


def undeclared_stubs() -> list[Use]:
    """Stubs that torch exports without a declaration; the seam has one of its own."""
    return [
        use
        for path in area_headers()
        for use in _matches(path, _bare(path), _DECLARED, "at::native::{}")
    ]


def table_stubs() -> list[Use]:
    """The stubs that the op table's column "aten" names."""
    paths = sorted(ROOT.glob("src/codegen/ops/op_table*.cpp"))
    return [u for p in paths for u in _matches(p, p.read_text(), _STUB, "at::native::{}")]


def operators(version: str) -> tuple[list[Use], list[Use]]:
    """Operators of aten by their names, such as add.Tensor, and by those of C++, such as add_Tensor."""
    plain, flat = _listed(version), []
    for path in sorted(BINDING.rglob("*.cpp")) + sorted(BINDING.rglob("*.h")):
        text = _MACRO.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), path.read_text())
        flat += [*_matches(path, text, DEFINED), *_matches(path, text, _CALLED)]
        for block in re.finditer(
            r"^TORCH_LIBRARY_IMPL\(aten,.*?^\}", text, re.MULTILINE | re.DOTALL
        ):
            plain += [Use(f[1], _where(path, text, block.start() + f.start()))
                      for f in IMPLEMENTED.finditer(block.group())]  # fmt: skip
    return plain, flat


def _listed(version: str) -> list[Use]:
    return [
        Use(name, f"src/torch/version/operators.json ({key})")
        for key, row in json.loads(LISTED.read_text()).items()
        for name in listed(row.get("operators", []), version)
    ]


def skipped_headers() -> list[Use]:
    """The parts of paths of headers whose stubs are left out."""
    parts = json.loads(LISTED.read_text())["skipped_headers"]["parts"]
    return [Use(part, "src/torch/version/operators.json (skipped_headers)") for part in parts]


def custom_operators() -> list[Use]:
    """Operators of torch's other libraries: "quantized::conv2d.new". Those of packages are looked at by each call (third_party.h)."""
    found = []
    for path in sorted(BINDING.rglob("*.cpp")):
        text = path.read_text()
        for one in _CUSTOM.finditer(text):
            if text[: one.start()].endswith("implement_expected<"):
                continue
            name = one[1] + (f".{one[2]}" if one[2] else "")
            found.append(Use(name, _where(path, text, one.start())))
    return found


def torchgen_names() -> list[Use]:
    """What the generator imports of torchgen: "module:name"."""
    path = SEAM / "torchgen_names.py"
    return [
        Use(f"{node.module}:{one.name}", f"{path.relative_to(ROOT)}:{node.lineno}")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("torchgen")
        for one in node.names
    ]


def table_lines(table: Path) -> dict[str, str]:
    """Where a row of a table of Python names stands, by its first string."""
    found = {}
    for node in ast.walk(ast.parse(table.read_text())):
        if isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.expr):
                    text = ast.unparse(key).strip("'\"")
                    found[text] = f"{table.relative_to(ROOT)}:{key.lineno}"
    return found


def _bare(path: Path) -> str:
    def blank(found: re.Match[str]) -> str:
        comment = found.lastgroup in ("line", "block")
        return re.sub(r"[^\n]", " ", found.group()) if comment else found.group()

    return TOKEN.sub(blank, path.read_text())


def _matches(path: Path, text: str, pattern: re.Pattern[str], form: str = "{}") -> Iterator[Use]:
    for found in pattern.finditer(text):
        yield Use(form.format(found[1]), _where(path, text, found.start()))


def _where(path: Path, text: str, at: int) -> str:
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}"
