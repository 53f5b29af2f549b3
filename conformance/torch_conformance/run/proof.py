# conformance/torch_conformance/run/proof.py: proves that the device itself computed what came out right.
"""With launches dropped and memory poisoned, a computed output must come out wrong."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch

from torch_conformance import SetupError
from torch_conformance import private_names as inside
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import Outcome
from torch_conformance.cells.session import Session
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import is_strided

ENOUGH = 4  # samples with a computed output that are tried in each cell
JUNK = 77.0


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
        if not is_strided(tensor) or inside.storage_address(tensor.untyped_storage()) in known:
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

    def __init__(self, session: Session, environment: dict[str, str]) -> None:
        self.session = session
        session.proof = self
        self.right = self.wrong = 0
        self.origin = Origin.NOTHING
        lacking = lacks(session.device)
        if lacking:
            raise SetupError(
                f"--prove-native: the device {described(session.device)} {' and '.join(lacking)}, "
                f"though the environment says {' '.join(f'{k}={v}' for k, v in environment.items())}"
            )

    def expects(self, expected: Any, inputs: Any) -> None:
        """Told by the session before it compares."""
        self.origin = origin(expected, inputs)

    def left_open(self) -> None:
        """Told by the session where it does not compare values."""
        self.origin = Origin.NOTHING

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
