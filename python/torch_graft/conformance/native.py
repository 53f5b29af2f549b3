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

from torch_graft import version as inside
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


NEEDS = (
    "The proof needs a driver that can be told to drop its kernel launches while copies and fills "
    "go on. Graft's host driver is told so by GRAFT_HOST_FAULTS=launch:drop, no other driver is "
    "yet. Without it a run still counts what fell back to the CPU: leave --prove-native out and "
    "read each cell's fallbacks, or make them errors with --fallback forbid. Whether a driver's "
    "own kernel or the processor behind it computed a result stays open"
)


def described(device: torch.device) -> str:
    """The device and, where its module tells, its driver."""
    module: Any = getattr(torch, device.type, None)
    try:
        return f"'{device}' (driver '{module.get_device_properties(device).driver}')"
    except Exception:
        return f"'{device}'"


def lacks(device: torch.device) -> list[str]:
    """What a device that drops its launches would do and this one does not."""
    found = []
    poison(device)
    there = torch.arange(64.0).to(device)
    if not there.cpu().equal(torch.arange(64.0)):
        found.append("does not copy")
    poison(device)
    if (there * 3).cpu().equal(torch.arange(64.0) * 3):
        found.append("does not drop its launches")
    return found


def check(run: Run) -> None:
    """Raises SetupError where the device cannot give the proof; a worker of its own finds out."""
    settings = dataclasses.replace(run.settings(), environment=DROPPED[0], dropped=True)
    o = run.options
    with Pool(settings, 1, o.time_limit, o.start) as pool:
        for _ in pool.run([[]]):
            pass


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
    known = {inside.storage_address(g.untyped_storage()) for g in given}
    found = Origin.NOTHING
    for tensor in compare.leaves(expected):
        if not is_strided(tensor) or tensor.numel() == 0:
            continue
        if inside.storage_address(tensor.untyped_storage()) in known:
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
        lacking = lacks(session.device)
        if lacking:
            raise SetupError(
                f"--prove-native: the device {described(session.device)} {' and '.join(lacking)}. "
                f"{NEEDS}"
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
