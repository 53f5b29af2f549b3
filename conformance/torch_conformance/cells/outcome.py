# conformance/torch_conformance/cells/outcome.py: what is known of a cell that has run, and how a check ends one.
"""A check raises Mismatch or NotApplicable; what else it raises is an error of the device."""

from __future__ import annotations

from collections.abc import Callable
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


def outcome_of(check: Callable[[], Outcome | None], samples: Callable[[], int]) -> Outcome:
    """What a check comes to, by what it returns or raises; samples: how many it has seen."""
    try:
        outcome = check()
    except NotApplicable as reason:
        return Outcome("skip", reason=f"not applicable: {reason}")
    except Mismatch as mismatch:
        return Outcome("fail", message=str(mismatch)[:2000])
    except Exception as error:  # an exception of the device is a result
        return Outcome("error", message=f"{type(error).__name__}: {error}"[:2000])
    if outcome is not None:
        return outcome
    if samples() == 0:
        return Outcome("skip", reason="not applicable: no sample of this kind")
    return Outcome("pass")
