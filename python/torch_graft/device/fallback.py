# python/torch_graft/device/fallback.py: torch.graft.fallback: what ran on the CPU instead.
"""Counts of operators that have no kernel on the device, and what becomes of them.

The policy is "off" (run on the CPU, count), "warn" (also warn once for each operator) or "forbid"
(raise an error). GRAFT_FALLBACK sets it at start; the context managers change it for a while, for
every thread, since autograd runs operators on threads of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from torch_graft import _C

__all__ = ["Count", "counts", "forbid", "off", "policy", "reset", "set_policy", "total", "warn"]

Count: TypeAlias = _C.FallbackCount
_log = logging.getLogger("torch_graft.fallback")


def counts() -> dict[str, Count]:
    """Calls, copied bytes and seconds of each operator that fell back since the last reset."""
    return dict(_C.fallback_counts())


def total() -> int:
    """Number of calls that fell back since the last reset."""
    return sum(count.calls for count in counts().values())


def reset() -> None:
    _C.reset_fallback_counts()


def policy() -> str:
    return str(_C.fallback_policy())


def set_policy(name: str) -> None:
    _C.set_fallback_policy(name)


@contextmanager
def _under(name: str) -> Iterator[None]:
    before = policy()
    set_policy(name)
    try:
        yield
    finally:
        set_policy(before)


def forbid() -> AbstractContextManager[None]:
    """Inside, an operator without a kernel raises RuntimeError."""
    return _under("forbid")


def warn() -> AbstractContextManager[None]:
    """Inside, the first fallback of each operator warns."""
    return _under("warn")


def off() -> AbstractContextManager[None]:
    """Inside, fallbacks are counted and nothing else."""
    return _under("off")


def record() -> None:
    """Logs the counts."""
    if not _log.isEnabledFor(logging.INFO):
        return
    for operator, count in counts().items():
        _log.info("the CPU ran %s %d times, in %.3f s, with %d bytes copied: %s", operator,
                  count.calls, count.seconds, count.bytes,
                  count.reason or "Graft has no kernel for it")  # fmt: skip
