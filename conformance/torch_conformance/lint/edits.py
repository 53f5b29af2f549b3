# conformance/torch_conformance/lint/edits.py: findings of the lint, and which of their edits are safe.
"""An edit is safe when the code means on CUDA what it meant, and the same on any other accelerator.

So a guard ("is CUDA there?") is edited only where nothing that it may guard stays tied to CUDA.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple


class Edit(NamedTuple):
    """Bytes [start, end) of the source become text."""

    start: int
    end: int
    text: str


class Finding(NamedTuple):
    line: int
    column: int
    what: str
    proposal: str
    edits: tuple[Edit, ...] = ()


class Place(NamedTuple):
    """A finding before it is known whether its edits are safe."""

    finding: Finding
    unit: ast.AST | None  # the outermost function around it
    guard: str  # what it asks for, when it is a guard


def only_safe(places: list[Place]) -> Iterator[Finding]:
    tied = {place.unit for place in places if not place.finding.edits}
    unsafe = {p.guard for p in places if p.guard and (p.unit in tied or (tied and not p.unit))}
    for place in places:
        alone = place.guard.startswith("torch.")  # not renamed together with its import
        around = place.unit in tied or (tied and not place.unit)
        keep = not place.guard or (not around if alone else place.guard not in unsafe)
        yield place.finding if keep else place.finding._replace(edits=())


def edits_of(findings: list[Finding]) -> Iterator[Edit]:
    """Edits to apply, last first, none twice and none inside another."""
    end = -1
    chosen = []
    for edit in sorted({e for f in findings for e in f.edits}, key=lambda e: (e.start, -e.end)):
        if edit.start >= end:
            chosen.append(edit)
            end = edit.end
    yield from reversed(chosen)


def apply(source: bytes, findings: list[Finding]) -> bytes:
    for edit in edits_of(findings):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source
