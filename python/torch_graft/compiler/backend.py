# python/torch_graft/compiler/backend.py: the backend "graft" of torch.compile.
"""Graphs on our devices go to the graph compiler, all others to Inductor, as if Graft were not there."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.assembling import boxed, compiled
from torch_graft.compiler.placing import device_among
from torch_graft.compiler.tracing import Runnable, Traced, backend

_log = logging.getLogger("torch_graft.compiler")


def graft(
    module: fx.GraphModule, examples: Sequence[Any], *, mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """What torch.compile calls with each graph. mode and options are Inductor's."""
    if device_among(module, examples) is not None:
        return backend(build)(module, examples)
    _log.debug("a graph without a tensor of the device goes to Inductor")
    inductor = inside.InductorWrapper(mode, options, None)
    compiled: Callable[..., Any] = inductor(module, examples)
    return compiled


def build(traced: Traced) -> Runnable:
    """The compiled form of one of AOTAutograd's graphs; where the compiler does not take it, the
    graph itself, with one warning that says why. A wrong setting raises."""
    _C.check_vendor_kernels()
    try:
        run = compiled(traced)
    except Exception as error:
        warnings.warn(f"torch.compile runs this {traced.part} graph without compiling it: {error}",
                      stacklevel=2)  # fmt: skip
        return traced.module

    if traced.part == "backward":
        return boxed(run)

    def call(*given: Any) -> list[Any]:
        return run(list(given))

    return call
