"""Statistics of interleaved pairs: ratios, the median's interval, rows with goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from statistics import median

Sampler = Callable[[], float]


def interleave(count: int, device: Sampler, against: Sampler) -> tuple[list[float], list[float]]:
    """Takes pairs in turn, the order within a pair changing, so that drift hits both alike."""
    ours: list[float] = []
    theirs: list[float] = []
    for i in range(count):
        halves = [(ours, device), (theirs, against)]
        for samples, take in halves if i % 2 else reversed(halves):
            samples.append(take())
    return ours, theirs


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Order statistics that hold the true median with at least `confidence`, whatever the law.

    With n values the k-th smallest lies above the median with probability sum(comb(n, i), i < k)
    / 2**n; too few values give their whole range.
    """
    ordered, n = sorted(values), len(values)
    tail, below = 0.0, 0
    while below < n // 2:
        tail += comb(n, below) / 2**n
        if 2 * tail > 1 - confidence:
            break
        below += 1
    low = max(below - 1, 0)
    return ordered[low], ordered[n - 1 - low]


@dataclass
class Row:
    """One line of the table. value, low and high are ratios, or in `unit`: a difference, or bytes.

    Ratios of other things than the case's time have units of their own: "compiling" (seconds),
    "launches", "kernels", "peak" (bytes), "mean" (of ratios).
    """

    name: str
    goal: float
    value: float
    low: float
    high: float
    device_min: float
    against_min: float
    unit: str = "ratio"
    idle: float = 0.0

    @property
    def verdict(self) -> str:
        if self.value <= self.goal:
            return "holds"
        return "misses" if self.value <= 2 * self.goal else "misses twice"


def ratio_row(name: str, goal: float, device: list[float], against: list[float]) -> Row:
    """Row of paired samples: device[i] was taken right beside against[i]."""
    ratios = [d / a for d, a in zip(device, against, strict=True)]
    return Row(name, goal, median(ratios), *median_interval(ratios), min(device), min(against))


def difference_row(name: str, goal: float, unit: str, device: list[float],
                   against: list[float]) -> Row:  # fmt: skip
    """Like ratio_row, for a goal on device[i] - against[i]."""
    gaps = [d - a for d, a in zip(device, against, strict=True)]
    return Row(name, goal, median(gaps), *median_interval(gaps), min(device), min(against), unit)
