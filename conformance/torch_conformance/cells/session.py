# conformance/torch_conformance/cells/session.py: what a cell needs to run: the device, its plugin, its lists.
"""run(cell) gives the outcome of a cell in this process; nothing here survives a crash of the device."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from torch_conformance.cells import registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.expectations import Expectations
from torch_conformance.cells.outcome import Outcome, outcome_of
from torch_conformance.tensors import compare

FALLBACK_POLICIES = {"allow": "off", "warn": "warn", "forbid": "forbid"}


class Session:
    """Runs cells on one device. Not thread-safe; progress is told the number of each sample."""

    def __init__(
        self,
        device: str,
        *,
        plugin: ModuleType | None = None,
        expectations: Expectations | None = None,
        fallback: str = "allow",
        upstream: bool = True,
        progress: Callable[[int], None] = lambda sample: None,
    ) -> None:
        self.device = torch.device(device)
        self.plugin = plugin
        self.expectations = expectations or Expectations.built_in(self.device.type)
        self.progress = progress
        self.upstream = upstream
        self.notes: set[str] = set()
        self.samples = 0
        self.case: Any = None  # the last operator's samples, which its next aspect takes over
        self.proof: Any = None  # of nativeness: a run.proof.Proof, while launches are dropped
        module = None if self.device.type == "cpu" else torch.get_device_module(self.device.type)
        self.counter = getattr(module, "fallback", None)
        if self.counter is not None:
            self.counter.set_policy(FALLBACK_POLICIES[fallback])

    def on_device(self, cell: Cell) -> contextlib.AbstractContextManager[Any]:
        """Surrounds all that the device computes for a cell; a plugin may put its own around it."""
        if self.plugin is not None and hasattr(self.plugin, "on_device"):
            manager: contextlib.AbstractContextManager[Any] = self.plugin.on_device(cell)
            return manager
        return contextlib.nullcontext()

    def run(self, cell: Cell) -> Outcome:
        """The outcome of one cell after its expectations; never raises for what the device does."""
        row = self.expectations.find(cell)
        if row is not None and row.kind == "skip":
            return Outcome("skip", reason=row.reason)
        if self.counter is not None:
            self.counter.reset()
        self.notes, self.samples, start = set(), 0, time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check = registry.runner(cell.suite)
            outcome = outcome_of(lambda: check(self, cell), lambda: self.samples)
        outcome.samples = self.samples
        outcome.seconds = round(time.perf_counter() - start, 6)
        if self.counter is not None:
            outcome.fallbacks = {name: c.calls for name, c in self.counter.counts().items()}
        if self.notes:
            outcome.reason = "; ".join(filter(None, [outcome.reason, *sorted(self.notes)]))
        return self.expectations.judged(cell, outcome, upstream=self.upstream)

    def expects(self, expected: Any, inputs: Any) -> None:
        """Told by checks before they compare: whether a result must be computed is seen from it."""
        if self.proof is not None:
            self.proof.expects(expected, inputs)

    def left_open(self, reason: str) -> None:
        """Values of the sample are not compared."""
        self.notes.add(reason)
        if self.proof is not None:
            self.proof.left_open()

    def usable(self) -> bool:
        """Whether the device still adds 1 and 1, after an error (the first try may only tell of it)."""
        for _ in range(2):
            with contextlib.suppress(Exception):
                if (torch.ones(2).to(self.device) + 1).cpu().eq(2).all():
                    return True
        return False

    def synchronize(self) -> None:
        """Lets the device raise what it has found wrong so far."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device.type).synchronize()

    def values_compared(self, cell: Cell) -> bool:
        row = self.expectations.find(cell)
        if row is not None and row.kind == "values":
            self.left_open(row.reason)
            return False
        return True

    def tolerances(self, info: Any) -> dict[torch.dtype, compare.Tolerance]:
        return compare.tolerances(info, self.device.type)
