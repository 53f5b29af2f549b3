# src/torch/our_operators.py: finds the operators of torch that the sources here define and register.
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

DEFINED = re.compile(r"GRAFT_(?:OPERATOR|STRUCTURED)\(\s*(\w+)\)")
IMPLEMENTED = re.compile(r'\bimpl\(\s*"(?:aten::)?([\w.]+)"')
BLOCK = re.compile(r"TORCH_LIBRARY_IMPL\(aten,\s*(\w+)\b")


class OurSources:
    """What the hand-written sources define and register."""

    def __init__(self, folder: Path) -> None:
        self.defined: set[str] = set()
        self.registered: dict[str, set[str]] = defaultdict(set)  # by dispatch key
        for path in sorted(folder.glob("*.cpp")):
            text = path.read_text()
            self.defined |= set(DEFINED.findall(text))
            for block in re.split(r"^(?=TORCH_LIBRARY_IMPL)", text, flags=re.MULTILINE)[1:]:
                key = BLOCK.match(block)
                if key:
                    self.registered[key[1]] |= set(IMPLEMENTED.findall(block))
