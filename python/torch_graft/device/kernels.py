# python/torch_graft/device/kernels.py: torch.graft.kernels: whose kernels ran.
"""Which of the vendor's own kernels (graft.ops), its libraries (graft.blas, graft.dnn), Graft's
generated kernels and the CPU computed an operator."""

from __future__ import annotations

import json
from types import TracebackType

from torch_graft import _C

__all__ = ["Kernels", "kernels"]

SOURCES = ("vendor", "library", "generated", "cpu")


class Kernels:
    """Counts while its block runs, in all threads and on all devices of Graft. Blocks do not nest."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._shares: dict[str, dict[str, int]] = {}

    def __enter__(self) -> Kernels:
        self._before = {name: count.calls for name, count in _C.fallback_counts().items()}
        _C.count_runs(True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _C.count_runs(False)
        shares = {
            name: dict(zip(SOURCES, [*counts, 0], strict=True))
            for name, counts in json.loads(_C.runs_json()).items()
        }
        for name, count in _C.fallback_counts().items():
            calls = count.calls - self._before.get(name, 0)
            if calls > 0:
                shares.setdefault(name, dict.fromkeys(SOURCES, 0))["cpu"] = calls
        self._shares = shares

    def shares(self) -> dict[str, dict[str, int]]:
        """By operator: how many launches each of the sources ran; of "cpu", calls."""
        return self._shares

    def total(self) -> dict[str, int]:
        """The same for all operators together."""
        return {s: sum(share[s] for share in self._shares.values()) for s in SOURCES}

    def __str__(self) -> str:
        width = max([8, *(len(name) for name in self._shares)])
        lines = [" ".join([f"{'operator':{width}}", *(f"{s:>9}" for s in SOURCES)])]
        for name, share in sorted(self._shares.items()):
            lines.append(" ".join([f"{name:{width}}", *(f"{share[s]:9}" for s in SOURCES)]))
        return "\n".join(lines)


def kernels() -> Kernels:
    """A context manager: with kernels() as ran: ...; then ran.shares()."""
    return Kernels()
