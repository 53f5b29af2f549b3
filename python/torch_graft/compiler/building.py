# python/torch_graft/compiler/building.py: the Dynamo backend of optimized modules.
"""Compiles Dynamo's graphs and keeps the way past AOTAutograd's wrapper where it does nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.assembling import boxed, compiled
from torch_graft.compiler.tracing import Traced, backend

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
        run = compiled(traced)
    except Exception as error:
        built.why = str(error)
    if traced.part == "inference" and _bare():
        built.inner = run
        built.inputs = len(traced.module.graph.find_nodes(op="placeholder"))
        [output] = traced.module.graph.find_nodes(op="output")
        built.outputs = len(output.args[0])
    return boxed(run) if traced.part == "backward" else functools.partial(_gathered, run)


def _bare() -> bool:
    """Whether AOTAutograd's graph is the user's: nothing to copy back, no view to make again."""
    known: Any = inside.TracingContext.get().fw_metadata
    plain = all(info.output_type is inside.OutputType.non_alias for info in known.output_info)
    kept = all(
        info.mutation_type is not inside.MutationType.MUTATED_OUT_GRAPH for info in known.input_info
    )
    return plain and kept and known.num_intermediate_bases == 0 and not known.tokens


def _spread(run: Run, inputs: list[Any]) -> Any:
    return run(*inputs)


def _gathered(run: Run, *inputs: Any) -> Any:
    return run(list(inputs))


def _missing(*_: Any) -> Any:
    raise AssertionError("a graph is called before it is built")
