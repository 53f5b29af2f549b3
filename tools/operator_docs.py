# tools/operator_docs.py: writes docs/generated/operators.md: how each operator is served, and the op table.
"""From the committed conformance report, PyTorch's dispatcher and the op table of the installed Graft.

Usage: tools/operator_docs.py [--check]. With --check nothing is written; the exit code is 1 when the
page differs.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import conformance_summary
from torch_conformance.cells import cases
from torch_graft import _C

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs/generated/conformance" / "graft-host.toml"
PAGE = ROOT / "docs/generated/operators.md"
INTRODUCTION = """\
<!-- docs/generated/operators.md: written by tools/operator_docs.py; do not edit. -->
# Operators

How each entry of PyTorch's operator database (op_db) runs on `device="graft"`, from the
[conformance report](conformance/README.md), from PyTorch's dispatcher and from the op table.

- *native*: Graft has the kernel, or PyTorch's own device-independent code runs on Graft's kernels.
- *composite*: PyTorch builds it from other operators; all of them ran on the device.
- *with the CPU*: one or more of its samples left an operator to the CPU, which is counted
  ([the fallback](../use/fallback.md)).
- *not yet*: no cell passes.
- *not judged*: nothing can be compared, as where upstream has no samples in the report's dtypes.
"""


@functools.cache
def registered() -> set[str]:
    """Operators, without overloads, that have a kernel for the device's dispatch key."""
    found = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    return {name.removeprefix("aten::").split(".")[0] for name in found}


def served(info: Any, cells: list[dict[str, Any]]) -> str:
    if all(cell["status"] == "skip" for cell in cells):
        return "not judged"
    passed = [cell for cell in cells if cell["status"] == "pass"]
    if not passed:
        return "not yet"
    if any(cell["fallbacks"] for cell in passed):
        return "with the CPU"
    return "native" if info.aten_name in registered() else "composite"


def dtypes(cells: list[dict[str, Any]], aspect: str) -> str:
    passed = {c["dtype"] for c in cells if c["aspect"] == aspect and c["status"] == "pass"}
    return ", ".join(sorted(passed)) or "-"


def entry_rows(cells: list[dict[str, Any]]) -> list[tuple[str, str, str, str, str]]:
    """(entry, how it is served, dtypes forward, dtypes backward, operators left to the CPU)."""
    judged: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        if cell["suite"] == "op" and cell["aspect"] in ("forward", "backward"):
            judged[cell["entry"]].append(cell)
    rows = []
    for name, info in sorted(cases.entries("op").items()):
        mine = judged[name]
        left = sorted({op.removeprefix("aten::") for cell in mine for op in cell["fallbacks"]})
        named = ", ".join(f"`{op}`" for op in left)
        rows.append((f"`{name}`", served(info, mine), dtypes(mine, "forward"),
                     dtypes(mine, "backward"), named))  # fmt: skip
    return rows


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def op_table() -> str:
    rows = [
        (f"`{row['name']}`", str(row["inputs"]), str(row["scalars"]), str(row["outputs"]),
         ", ".join(row["types"]), ", ".join(f"`{stub}`" for stub in row["aten"]))
        for row in json.loads(_C.op_table_json())
    ]  # fmt: skip
    return table(("row", "inputs", "scalars", "outputs", "computes in", "ATen's stubs"), rows)


def page() -> str:
    summary = conformance_summary.read(REPORT)
    rows = entry_rows(conformance_summary.results_of(summary)["cells"])
    counts = ", ".join(f"{n} {how}" for how, n in Counter(row[1] for row in rows).most_common())
    titles = ("entry", "served", "forward in", "backward in", "left to the CPU")
    return "\n".join(
        [INTRODUCTION, f"{len(rows)} entries: {counts}.", "", table(titles, rows), "",
         "## The op table", "", "Elementwise operations, one row each: [how to add one]"
         "(../develop/add-an-operator.md#an-elementwise-operation-two-files).", "", op_table(), ""]
    )  # fmt: skip


def main() -> int:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print(f"{PAGE.name} is out of date: run tools/operator_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
