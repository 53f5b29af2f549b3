# python/torch_graft/compiler/assembling.py: from a traced graph to what runs it.
"""Lowers a graph's text and puts its parts together; every graph is reported."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch_graft import _C
from torch_graft.compiler.reports import Report, remember
from torch_graft.compiler.tracing import Traced

Run = Callable[[list[Any]], list[Any]]


def compiled(traced: Traced) -> Run:
    """The graph as a function of lists. Raises where the compiler does not take it, or fails."""
    begin = time.perf_counter()
    try:
        if traced.refusal is not None:
            raise traced.refusal
        return _compiled(traced, begin)
    except Exception as error:
        remember(Report(traced.part, [], time.perf_counter() - begin, str(error)))
        raise


def _compiled(traced: Traced, begin: float) -> Run:
    assert traced.written is not None
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    text, externals, device = traced.written
    index = device.index or 0
    with unset_fake_temporarily():
        tensors = {name: one.to(device) for name, one in externals.items()}
        prologue, rest, taken = _C.compiler_lower(text, traced.part != "inference", index)
        main = _C.CompiledGraph(rest, index, tensors)
        before = None if prologue is None else _C.CompiledGraph(prologue, index, tensors)
    graphs = [main] if before is None else [main, before]
    remember(Report(traced.part, graphs, time.perf_counter() - begin))
    return main.run if before is None else _C.PreparedGraph(before.run, main.run, taken)
