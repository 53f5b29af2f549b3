# python/torch_graft/compiler/reports.py: what torch.compile made of each graph.
"""Kept in the order of compilation, without keeping the graphs alive."""

from __future__ import annotations

import weakref

from torch_graft import _C


class Report:
    """One graph of AOTAutograd. part: forward, backward or inference; why: why it was not compiled."""

    def __init__(self, part: str, graph: _C.CompiledGraph | None, why: str | None) -> None:
        self.part = part
        self.why = why
        self._graph = None if graph is None else weakref.ref(graph)

    @property
    def compiled(self) -> bool:
        return self._graph is not None

    def counts(self) -> _C.GraphCounts | None:
        """How its nodes run; None where it was not compiled or is gone."""
        graph = self._graph() if self._graph is not None else None
        return None if graph is None else graph.counts()

    def __repr__(self) -> str:
        counts = self.counts()
        if self.why is not None:
            return f"Report({self.part}, not compiled: {self.why})"
        if counts is None:
            return f"Report({self.part}, gone)"
        eager = sum(counts.eager.values())
        return (f"Report({self.part}, {counts.nodes} nodes: {counts.fused} fused into "
                f"{counts.kernels} kernels, {counts.library} by the library, {eager} eager)")  # fmt: skip


_reports: list[Report] = []


def remember(report: Report) -> None:
    _reports.append(report)


def reports() -> list[Report]:
    """One for each graph that torch.compile made since the process began or reset_reports()."""
    return list(_reports)


def reset_reports() -> None:
    _reports.clear()
