# python/torch_graft/compiler/assembling.py: from a traced graph to what runs it.
"""Compiles a graph's text and puts its parts together; every graph is reported."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.placing import carrier
from torch_graft.compiler.report import Report, remember
from torch_graft.compiler.tracing import Traced

Run = Callable[[list[Any]], list[Any]]
_log = logging.getLogger("torch_graft.compiler")


def compiled(traced: Traced) -> Run:
    """The graph as a function of lists; that of a backward graph empties its list. Raises where the
    compiler does not take it, or fails."""
    begin = time.perf_counter()
    try:
        if traced.refusal is not None:
            raise traced.refusal
        return _compiled(traced, begin)
    except Exception as error:
        report = Report(traced.part, [], time.perf_counter() - begin, str(error))
        remember(report)
        _log.info("runs as PyTorch traced it: %r", report)
        raise


def _compiled(traced: Traced, begin: float) -> Run:
    assert traced.written is not None
    text, externals, device = traced.written
    device = carrier(device)
    index = device.index or 0
    with inside.unset_fake_temporarily():
        tensors = {name: one.to(device) for name, one in externals.items()}
        before, main, taken, strides = _C.compile_graph(
            text, traced.part != "inference", index, traced.lays_out, tensors
        )
    if traced.part == "forward" and traced.lays_out:
        _report_strides(strides)
    graphs = [main] if before is None else [main, before]
    report = Report(traced.part, graphs, time.perf_counter() - begin)
    remember(report)
    _log.info("compiled for %s in %.3f s: %r", device, report.seconds, report)
    if _log.isEnabledFor(logging.INFO) and (counts := report.counts()) and counts.eager:
        _log.info("the CPU runs at each call: %s", counts.eager)
    if traced.part == "backward":
        return main.run_and_give
    return main.run if before is None else _C.PreparedGraph(before.run, main.run, taken)


def _report_strides(strides: list[list[int] | None]) -> None:
    """AOTAutograd hands them on to whoever compiles the backward graph."""
    context: Any = inside.TracingContext.try_get()
    if context is not None and context.output_strides is not None:
        context.output_strides[:] = strides


def boxed(run: Run) -> Run:
    """run as AOTAutograd calls what takes a list and may empty it."""

    def call(given: list[Any]) -> list[Any]:
        return run(given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
