# tools/operations_docs.py: writes the tables of docs/drivers/operations.md: the vocabulary of graft.ops.
"""From the operators of src/kernels/operation/operators.def and the op table of the installed Graft.

Usage: tools/operations_docs.py [--check]. With --check nothing is written; the exit code is 1 when
the page differs.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from torch_graft import _C

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/drivers/operations.md"
VOCABULARY = ROOT / "src/kernels/operation/operators.def"
MARK = "<!-- From here on written by tools/operations_docs.py; do not edit. -->\n"


@dataclass(frozen=True)
class Operator:
    """An operator of the kernel library and what a call of it has."""

    name: str
    written: str
    read: str
    integers: str
    numbers: str
    scalars: str
    header: str

    def line(self) -> str:
        """As tests/kernels/operations_version_1.txt freezes it."""
        fields = [self.name, self.written, self.read, self.integers, self.numbers, self.scalars]
        return " | ".join(fields)


def operators() -> list[Operator]:
    """Those of the kernel library, in their order."""
    text = VOCABULARY.read_text()
    begin = text.index("#define GRAFT_OPERATIONS(OPERATION)")
    body = text[begin:].replace("\\\n", " ")
    body = re.sub(r'"\s+"', "", body)
    found = re.findall(r"OPERATION\((\w+)," + r'\s*"([^"]*)",' * 5 + r'\s*"([^"]*)"\s*\)', body)
    return [Operator(*fields) for fields in found]


def rows() -> list[tuple[str, int, int, int]]:
    """Name, inputs, scalars and outputs of the op table's rows, by name."""
    table = json.loads(_C.op_table_json())
    found = [(row["name"], row["inputs"], row["scalars"], row["outputs"]) for row in table]
    return sorted(found)


def frozen() -> list[str]:
    """What a driver of this version of the vocabulary may rely on, a line an operator."""
    lines = [operator.line() for operator in operators()]
    lines += [f"{name} | row | {i} | {s} | {o}" for name, i, s, o in rows()]
    return sorted(lines)


def tables() -> str:
    """The part of the page that the vocabulary makes."""
    lines = ["## Operators of the kernel library", ""]
    lines += ["| name | written | read | integers | numbers | scalars | computes as |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for one in operators():
        header = f"[{one.header}](../../src/kernels/{one.header}.h)"
        words = [one.written, one.read, one.integers, one.numbers, one.scalars]
        lines.append(f"| `{one.name}` | " + " | ".join(words) + f" | {header} |")
    lines += ["", "## Rows of the op table", ""]
    lines += ["| name | inputs | scalars | outputs |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {i} | {s} | {o} |" for name, i, s, o in rows()]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = PAGE.read_text()
    wanted = text[: text.index(MARK)] + MARK + "\n" + tables()
    if "--check" in sys.argv:
        if text != wanted:
            print(f"{PAGE.relative_to(ROOT)} is old: run tools/operations_docs.py")
        return int(text != wanted)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
