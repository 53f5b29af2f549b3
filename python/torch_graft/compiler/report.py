# python/torch_graft/compiler/report.py: what torch.compile made of each graph.
"""Kept in the order of compilation, without keeping the graphs alive."""

from __future__ import annotations

import weakref

from torch_graft import _C


class Report:
    """One graph of AOTAutograd. part: forward, backward or inference; why: why it was not compiled.

    graphs: what runs at each call, then what prepares its weights. seconds: what the back end took,
    from the written graph to loaded kernels.
    """

    def __init__(
        self, part: str, graphs: list[_C.CompiledGraph], seconds: float, why: str | None = None
    ) -> None:
        self.part = part
        self.seconds = seconds
        self.why = why
        self._graphs = [weakref.ref(graph) for graph in graphs]

    @property
    def compiled(self) -> bool:
        return self.why is None

    def counts(self) -> _C.GraphCounts | None:
        """How the nodes run at each call; None where it was not compiled or is gone."""
        return self._counts(0)

    def prepared(self) -> _C.GraphCounts | None:
        """How the nodes run that depend on weights alone, once for each change of these; None
        without any."""
        return self._counts(1)

    def _counts(self, place: int) -> _C.GraphCounts | None:
        graph = self._graphs[place]() if place < len(self._graphs) else None
        return None if graph is None else graph.counts()

    def __repr__(self) -> str:
        counts = self.counts()
        if self.why is not None:
            return f"Report({self.part}, not compiled: {self.why})"
        if counts is None:
            return f"Report({self.part}, gone)"
        eager = sum(counts.eager.values())
        vendor = f"{counts.vendor} in the vendor's graphs, " if counts.vendor else ""
        return (f"Report({self.part}, {counts.nodes} nodes: {vendor}{counts.fused} fused into "
                f"{counts.kernels} kernels, {counts.library} by the library, {eager} eager)")  # fmt: skip


_reports: list[Report] = []


def remember(report: Report) -> None:
    _reports.append(report)


def reports() -> list[Report]:
    """One for each graph that torch.compile made since the process began or reset_reports()."""
    return list(_reports)


def reset_reports() -> None:
    _reports.clear()
