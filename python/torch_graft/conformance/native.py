# python/torch_graft/conformance/native.py: proves that the device itself computed what came out right.
"""With launches dropped and memory poisoned, a computed output must come out wrong.

It is done twice, with and without the zero-copy view of device memory (GRAFT_HOST_VIEW=0), so that
an operator cannot pass through the fallback either way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch

from torch_graft.conformance import SetupError, cases, compare
from torch_graft.conformance.pool import Pool
from torch_graft.conformance.progress import Progress
from torch_graft.conformance.samples import is_strided

if TYPE_CHECKING:
    from torch_graft.conformance.cases import Cell
    from torch_graft.conformance.running import Run
    from torch_graft.conformance.session import Outcome, Session

DROPPED = ({"GRAFT_HOST_FAULTS": "launch:drop"},
           {"GRAFT_HOST_FAULTS": "launch:drop", "GRAFT_HOST_VIEW": "0"})  # fmt: skip
ENOUGH = 4  # samples with a computed output that are tried in each cell
JUNK = 77.0


def poison(device: torch.device) -> None:
    """Leaves freed blocks of many sizes full of junk for the next outputs."""
    held = [torch.full((2**k,), JUNK).to(device) for k in range(2, 14) for _ in range(3)]
    del held


class Origin(Enum):
    """What a right result says while launches are dropped."""

    NOTHING = "a view or nothing at all: no launch is needed"
    MAYBE_COPIED = (
        "inputs, zeros or one constant, as copies and fills make: wrong tells of a launch"
    )
    COMPUTED = "right says that something else than the device computed it"


def origin(expected: Any, inputs: Any) -> Origin:
    """Where the values of a result must come from, seen from the CPU's result and its inputs."""
    given = [t.detach() for t in compare.leaves(inputs) if is_strided(t)]
    known = {g.untyped_storage()._cdata for g in given}
    found = Origin.NOTHING
    for tensor in compare.leaves(expected):
        if not is_strided(tensor) or tensor.numel() == 0:
            continue
        if tensor.untyped_storage()._cdata in known:
            continue
        flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
        flat = flat[~flat.isnan()]  # junk may be NaN, too
        if flat.numel() == 0:
            continue
        if not bool((flat == flat[0]).all()) and not _among(flat, given):
            return Origin.COMPUTED
        found = Origin.MAYBE_COPIED
    return found


def _among(flat: torch.Tensor, given: list[torch.Tensor]) -> bool:
    """Whether all values of flat are zero or among the given ones, as in a padded rearrangement."""
    same = [g.resolve_conj().resolve_neg().reshape(-1) for g in given if g.dtype == flat.dtype]
    same.append(flat.new_zeros(1))
    try:
        return bool(torch.isin(flat, torch.cat(same)).all())
    except (RuntimeError, TypeError):
        return any(g.equal(flat) for g in same)


class Proof:
    """Runs cells of a session whose device drops every launch; counts what still comes out right."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.proof = self
        self.right = self.wrong = 0
        self.origin = Origin.NOTHING
        self._drops()

    def _drops(self) -> None:
        device = self.session.device
        poison(device)
        there = torch.arange(64.0).to(device)
        poison(device)
        if (there * 3).cpu().equal(torch.arange(64.0) * 3):
            raise SetupError(
                f"--prove-native: the device '{device}' does not drop its launches. It needs "
                "Graft's host driver, which does so under GRAFT_HOST_FAULTS=launch:drop"
            )

    def before(self) -> None:
        self.origin = Origin.NOTHING
        poison(self.session.device)

    def after(self, right: bool) -> bool:
        """Counts a sample; whether there were enough."""
        if self.origin is not Origin.NOTHING:
            self.wrong += not right
        if self.origin is Origin.COMPUTED:
            self.right += right
        return self.right + self.wrong >= ENOUGH

    def run(self, cell: Cell) -> Outcome:
        self.right = self.wrong = 0
        outcome = self.session.run(cell)
        outcome.native = None if self.right + self.wrong == 0 else self.right == 0
        return outcome


def unproven(run: Run, cells: list[Cell]) -> list[Cell]:
    found = run.journal.cells
    return [c for c in cells if c in found and found[c]["status"] == "pass"
            and found[c]["native"] is None]  # fmt: skip


def prove(run: Run, cells: list[Cell], until: float | None) -> bool:
    """Sets "native" of the cells that passed; whether there was time for all of them."""
    passed = unproven(run, cells)
    progress = Progress(2 * len(passed), what="proofs")
    first, second = (dict(_verdicts(run, environment, passed, until, progress))
                     for environment in DROPPED)  # fmt: skip
    for cell in first.keys() & second.keys():
        record = dict(run.journal.cells[cell])
        record["native"] = verdict([first[cell], second[cell]], record["fallbacks"])
        run.journal.add(record)
    progress.end()
    return len(first) == len(second) == len(passed)


def _verdicts(
    run: Run, environment: dict[str, str], cells: list[Cell], until: float | None, told: Progress
) -> Iterator[tuple[Cell, bool | None]]:
    settings = dataclasses.replace(run.settings(), environment=environment, dropped=True)
    o = run.options
    with Pool(settings, o.workers, o.time_limit, o.start) as pool:
        for cell, outcome in pool.run(cases.group(cells), until):
            told.finished(cell, False)
            yield cell, outcome.native


def verdict(found: list[bool | None], fallbacks: dict[str, int]) -> bool | None:
    """False when anything came out right without the device, or a fallback was counted."""
    if fallbacks or False in found:
        return False
    return True if True in found else None
