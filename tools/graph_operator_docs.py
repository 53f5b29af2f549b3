# tools/graph_operator_docs.py: writes docs/generated/graph-operators.md: the operators of graph texts.
"""From the compiler's registry of operators, the op table of the installed Graft, the decompositions that are left out
and PyTorch's schemas.

Usage: tools/graph_operator_docs.py [--check]. With --check nothing is written; the exit code is 1 when the page differs.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import torch

from generated_page import ROOT, settle
from torch_graft import _C
from torch_graft.compiler.decompositions import KEPT, table

REGISTRY = ROOT / "src/compiler/graph/operators.h"
OTHERS = ROOT / "src/compiler/graph/operators.cpp"
PAGE = ROOT / "docs/generated/graph-operators.md"
INTRODUCTION = """\
<!-- docs/generated/graph-operators.md: written by tools/graph_operator_docs.py; do not edit. -->
# Operators of graph texts

The operators that Graft knows by name in [graft-graph 1](../drivers/graph-text-1.md), with their schemas in PyTorch {version}: arguments in their order, defaults, results.
Each means what PyTorch's documentation of `torch.ops.aten` says. A model may bring others, for which PyTorch's core decompositions have no rule; a compiler does not take those.
"""
# What no list above has: backwards that autograd brings.
BACKWARDS = ("aten._scaled_dot_product_fused_attention_overrideable_backward.default",)
CLASSES = {
    "kPointwise": "element by element", "kReduction": "reductions", "kView": "views",
    "kCopy": "copies", "kFill": "fills", "kMatmul": "matrix products", "kConvolution": "convolutions",
    "kImage": "images", "kRandom": "random numbers (never offered)", "kOther": "others",
}  # fmt: skip


def operators() -> dict[str, str]:
    """The class of each operator, by its name with the overload."""
    found: dict[str, str] = {}
    header, source = REGISTRY.read_text(), OTHERS.read_text()
    for cls, text in re.findall(r'X\(k\w+, (k\w+),[\s\\]*"([\w.]+)', header):
        found[text] = cls
    for cls, words in re.findall(r'\{OpClass::(k\w+),\s*((?:"[^"]*"\s*)+)\}', source):
        for word in "".join(re.findall(r'"([^"]*)"', words)).split():
            found[word.split("(")[0]] = cls
    for row in json.loads(_C.op_table_json()):
        for overload in row["overloads"]:
            found.setdefault(overload.split("(")[0], "kPointwise")
    for name in [*map(str, KEPT), *core(), *BACKWARDS]:
        found.setdefault(name.removeprefix("aten."), "kOther")
    return found


def core() -> list[str]:
    """PyTorch's core operators, as far as no decomposition takes them apart."""
    names = {
        one.split("::")[1]
        for one in torch._C._dispatch_get_all_op_names()
        if one.startswith("aten::")
    }
    found = [overload_of(name if "." in name else f"{name}.default") for name in names]
    apart = table()
    return sorted(
        str(one)
        for one in found
        if one is not None and torch.Tag.core in one.tags and one not in apart
    )


def overload_of(name: str) -> Any:
    base, overload = name.rsplit(".", 1)
    return getattr(getattr(torch.ops.aten, base, None), overload, None)


def schema(name: str) -> str:
    """As a text has the name; empty where this PyTorch has no such operator."""
    found = overload_of(name)
    return "" if found is None else f"aten.{name}({str(found._schema).split('(', 1)[1]}"


def page() -> str:
    parts = [INTRODUCTION.format(version=".".join(torch.__version__.split(".")[:2]))]
    found = operators()
    for cls, heading in CLASSES.items():
        names = sorted(name for name in found if found[name] == cls and schema(name))
        lines = [f"- `{schema(name)}`" for name in names]
        parts.append("\n".join([f"## {heading[0].upper()}{heading[1:]}", "", *lines, ""]))
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    return settle({PAGE: page()}, arguments, __file__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
