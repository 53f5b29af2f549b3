# conformance/torch_conformance/fuzz/findings.py: what the fuzz finds, and how findings are named and grouped.
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch_conformance.cells.outcome import Outcome

ASPECTS = {
    "survives": "the process died, hung, or lost its device",
    "values": "results differ",
    "refuses": "the device takes what the CPU refuses",
    "accepts": "the device refuses what the CPU computes",
}
TOLD = {  # not red
    "after": "the process died of what an earlier call did to it, mostly on the CPU",
    "words": "both refuse, with another class of exception",
}


class Finding(NamedTuple):
    aspect: str  # survives, values, refuses, accepts; "words" tells of exceptions and is never red
    status: str
    message: str
    number: int
    call: list[Any]  # packed


@dataclass
class FuzzOutcome(Outcome):
    """What a plan found; `next` is the first number that has not run."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    next: int = 0


@dataclass
class Found:
    """A finding with its subject, and the reason if it is listed."""

    name: str
    finding: Finding
    reason: str = ""

    @property
    def red(self) -> bool:
        return not self.reason and self.finding.aspect in ASPECTS

    def group(self) -> tuple[str, str]:
        """Findings of one group probably have one cause."""
        aspect = self.finding.aspect
        root = self.name.split("::")[-1].split(".")[0].strip("_")
        if aspect in ("survives", "values"):
            return aspect, root
        return aspect, re.sub(r"'[^']*'|\d+|\[[^]]*\]|\([^)]*\)", "#", self.finding.message)[:90]
