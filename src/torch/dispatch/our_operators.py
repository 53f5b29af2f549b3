# src/torch/dispatch/our_operators.py: finds the operators of torch that the sources here define and register.
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

DEFINED = re.compile(r"GRAFT_(?:OPERATOR|STRUCTURED)\(\s*(\w+)\)")
IMPLEMENTED = re.compile(r'\bimpl\(\s*"(?:aten::)?([\w.]+)"')
BLOCK = re.compile(r"TORCH_LIBRARY_IMPL\(aten,\s*(\w+)\b")


class OurSources:
    """What the hand-written sources define and register."""

    def __init__(self, folder: Path) -> None:
        self.defined: set[str] = set()
        self.registered: dict[str, set[str]] = defaultdict(set)  # by dispatch key
        for path in sorted(folder.rglob("*.cpp")):
            text = path.read_text()
            self.defined |= set(DEFINED.findall(text))
            for block in re.split(r"^(?=TORCH_LIBRARY_IMPL)", text, flags=re.MULTILINE)[1:]:
                key = BLOCK.match(block)
                if key:
                    self.registered[key[1]] |= set(IMPLEMENTED.findall(block))


def listed(operators: list[Any], version: str | None = None) -> list[str]:
    """The names of a list of version/operators.json: of all, or of those that this version of torch
    has. One that not every version has is {"name": ..., "since": "2.14", "before": "2.16"}."""
    return [
        row["name"]
        for row in ({"name": one} if isinstance(one, str) else one for one in operators)
        if version is None
        or minor(row.get("since", "0.0")) <= minor(version) < minor(row.get("before", "99.0"))
    ]


def minor(version: str) -> tuple[int, int]:
    """To compare versions by, whose third number does not count."""
    first, second = re.findall(r"\d+", version)[:2]
    return int(first), int(second)
