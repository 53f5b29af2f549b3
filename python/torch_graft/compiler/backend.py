# python/torch_graft/compiler/backend.py: the backend "graft" of torch.compile.
"""Graphs on our devices go to the graph compiler, all others to Inductor, as if Graft were not there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_graft import _C
from torch_graft.attaching import attached_name
from torch_graft.compiler.reports import Report, remember
from torch_graft.compiler.tracing import Runnable, Traced, backend


def graft(
    module: fx.GraphModule, examples: Sequence[Any], *, mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """What torch.compile calls with each graph. mode and options are Inductor's."""
    if _on_device(module, examples):
        return backend(build)(module, examples)
    inductor = torch._TorchCompileInductorWrapper(mode, options, None)
    compiled: Callable[..., Any] = inductor(module, examples)
    return compiled


def _on_device(module: fx.GraphModule, examples: Sequence[Any]) -> bool:
    name = attached_name()
    tensors = [*examples, *module.parameters(), *module.buffers()]
    tensors += [node.meta.get("example_value") for node in module.graph.nodes]
    return any(isinstance(one, torch.Tensor) and one.device.type == name for one in tensors)


def build(traced: Traced) -> Runnable:
    """The compiled form of one of AOTAutograd's graphs; where the compiler does not take it, the
    graph itself, with one warning that says why."""
    graph: _C.CompiledGraph | None = None
    why: str | None = None
    if traced.written is None:
        why = str(traced.refusal)
    else:
        try:
            graph = compiled(traced)
        except RuntimeError as error:
            why = str(error)
    remember(Report(traced.part, graph, why))
    if graph is None:
        warnings.warn(f"torch.compile runs this {traced.part} graph without compiling it: {why}",
                      stacklevel=2)  # fmt: skip
        return traced.module
    run = graph.run

    def call(*given: Any) -> list[Any]:
        return run(list(given))

    return call


def compiled(traced: Traced) -> _C.CompiledGraph:
    """Raises RuntimeError for a graph that the compiler does not take."""
    assert traced.written is not None
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    device = traced.written.device
    passes = _C.compiler_passes(traced.part != "inference")
    with unset_fake_temporarily():
        text = _C.compiler_optimize(traced.written.text, passes)
        externals = {name: one.to(device) for name, one in traced.written.externals.items()}
        return _C.CompiledGraph(text, device.index or 0, externals)
