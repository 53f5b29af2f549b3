# python/torch_graft/compiler/building.py: the Dynamo backend of optimized modules.
"""Compiles Dynamo's graphs and keeps the way past AOTAutograd's wrapper where it does nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_graft import _C
from torch_graft.compiler.tracing import Traced, backend
from torch_graft.compiler.writer import GraphText

Run = Callable[..., Any]


class Built:
    """A compiled graph: function takes its inputs and returns its outputs, as Dynamo calls it.

    why: what kept the compiler from one of its parts, which then runs as AOTAutograd wrote it.
    """

    def __init__(self) -> None:
        self.function: Run = _missing
        self.inner: Run | None = None  # of an inference graph; takes and returns lists
        self.inputs = self.outputs = 0  # of inner
        self.why: str | None = None

    def direct(self, inputs: int, outputs: int) -> Run | None:
        """inner, where function does no more than call it; else None."""
        return self.inner if self.inputs == inputs and self.outputs == outputs else None


def build_backend(
    wrap: Callable[[Built], Run],
) -> Callable[[fx.GraphModule, Sequence[Any]], Run]:
    """What torch.compile(backend=...) takes; Dynamo calls what wrap makes of each graph."""

    def compile_graph(module: fx.GraphModule, examples: Sequence[Any]) -> Run:
        built = Built()
        built.function = backend(functools.partial(_build, built))(module, examples)
        return wrap(built)

    return compile_graph


def _build(built: Built, traced: Traced) -> Run:
    run: Run = functools.partial(_spread, traced.module)
    try:
        if traced.refusal is not None:
            raise traced.refusal
        assert traced.written is not None
        run = _compiled(traced.written, traced.part)
    except RuntimeError as error:
        built.why = str(error)
    if traced.part == "inference" and _bare():
        built.inner = run
        built.inputs = len(traced.module.graph.find_nodes(op="placeholder"))
        [output] = traced.module.graph.find_nodes(op="output")
        built.outputs = len(output.args[0])
    return functools.partial(_gathered, run)


def _compiled(written: GraphText, part: str) -> Run:
    """The graph as a function of lists. Raises RuntimeError where the compiler does not take it."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    names = _C.compiler_passes(part != "inference")
    first = next(place for place, name in enumerate(names) if name.startswith("fuse"))
    with unset_fake_temporarily():
        text = _C.compiler_optimize(written.text, names[:first])
        if part != "inference":
            return _graph(_C.compiler_optimize(text, names[first:]), written)
        prologue, rest, taken = _C.compiler_take_prologue(text)
        if prologue is None or not taken:  # constants alone are no weights that change
            return _graph(_C.compiler_optimize(text, names[first:]), written)
        main = _graph(_C.compiler_optimize(rest, names[first:]), written)
        before = _graph(_C.compiler_optimize(prologue, names[first:]), written)
        return _C.PreparedGraph(before, main, taken)


def _graph(text: str, written: GraphText) -> Run:
    externals = {name: one.to(written.device) for name, one in written.externals.items()}
    return _C.CompiledGraph(text, written.device.index or 0, externals).run


def _bare() -> bool:
    """Whether AOTAutograd's graph is the user's: nothing to copy back, no view to make again."""
    known: Any = torch._guards.TracingContext.get().fw_metadata
    from torch._functorch._aot_autograd.schemas import MutationType, OutputType

    plain = all(info.output_type is OutputType.non_alias for info in known.output_info)
    kept = all(
        info.mutation_type is not MutationType.MUTATED_OUT_GRAPH for info in known.input_info
    )
    return plain and kept and known.num_intermediate_bases == 0 and not known.tokens


def _spread(run: Run, inputs: list[Any]) -> Any:
    return run(*inputs)


def _gathered(run: Run, *inputs: Any) -> Any:
    return run(list(inputs))


def _missing(*_: Any) -> Any:
    raise AssertionError("a graph is called before it is built")
