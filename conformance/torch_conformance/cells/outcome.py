# conformance/torch_conformance/cells/outcome.py: what is known of a cell that has run, and how a check ends one.
"""A check raises Mismatch or NotApplicable; what else it raises is an error of the device."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from torch_conformance.cells.cases import Cell


@dataclass
class Outcome:
    """What is known of a finished cell; the names are those of the results file."""

    status: str
    samples: int = 0
    seconds: float = 0.0
    message: str = ""
    reason: str = ""
    fallbacks: dict[str, int] = field(default_factory=dict)
    native: bool | None = None

    def record(self, cell: Cell) -> dict[str, Any]:
        return cell._asdict() | asdict(self)


class Mismatch(Exception):
    """A sample came out wrong; the text says which and how."""


class NotApplicable(Exception):
    """The cell has nothing to compare; the text says why."""
