# python/torch_graft/compiler/capturing.py: the graphs of a model, to look at.
"""Traces a function or module without running it; see docs/develop/compiler.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.tracing import Traced, backend


class Captured:
    """The texts of a model's graphs. backward is None where nothing needs a gradient.

    training: whether the passes are those of training. externals: by graph the large constants.
    """

    def __init__(
        self, forward: str, backward: str | None, training: bool,
        externals: dict[str, dict[str, torch.Tensor]],
    ) -> None:  # fmt: skip
        self.forward = forward
        self.backward = backward
        self.training = training
        self.externals = externals

    def passes(self) -> list[str]:
        """The names of the passes that optimized() runs, in their order."""
        return _C.compiler_passes(self.training)

    def optimized(self, passes: list[str] | None = None) -> Captured:
        """The same graphs after these passes, or all of passes()."""
        names = self.passes() if passes is None else passes
        return self._mapped(lambda text: _C.compiler_optimize(text, names))

    def arena_bytes(self) -> int:
        """Bytes that the larger of the graphs needs between its nodes, at typical sizes."""
        return max(_C.compiler_arena_bytes(text) for text in self._texts())

    def draw(self, path: str | Path) -> None:
        """Writes a picture (SVG) of the forward graph to path, and one of the backward graph beside
        it, with "-backward" before the ending."""
        path = Path(path)
        path.write_text(_C.compiler_draw(self.forward), encoding="utf-8")
        if self.backward is not None:
            beside = path.with_name(f"{path.stem}-backward{path.suffix}")
            beside.write_text(_C.compiler_draw(self.backward), encoding="utf-8")

    def _texts(self) -> list[str]:
        return [text for text in (self.forward, self.backward) if text is not None]

    def _mapped(self, change: Callable[[str], str]) -> Captured:
        backward = None if self.backward is None else change(self.backward)
        return Captured(change(self.forward), backward, self.training, self.externals)


class _Enough(BaseException):
    """Ends the call before the model runs; no handler of the model's is meant to see it."""


def capture(
    model: Callable[..., Any], *inputs: Any, training: bool = False, dynamic: bool = False
) -> Captured:
    """The graphs of model(*inputs), in text form. Nothing of the model runs and nothing changes.

    training: with a backward graph; otherwise as under no_grad. dynamic: sizes of the inputs are
    symbols. Raises Refusal for what the compiler does not take, and Dynamo's own error where the
    model cannot be traced as one graph.
    """
    graphs: dict[str, Traced] = {}
    whole = _whole_backend(graphs)

    def call(*given: Any) -> Any:
        return model(*given)

    with inside.dynamo_config.patch(allow_rnn=True), torch.set_grad_enabled(training):
        compiled = torch.compile(call, backend=whole, fullgraph=True, dynamic=dynamic)
        try:
            compiled(*inputs)
        except _Enough:
            pass
        finally:
            inside.reset_code(call.__code__)  # nothing of this stays with the model
    if not graphs:
        raise ValueError("there is nothing to compile: the call computes no tensor")
    for traced in graphs.values():
        if traced.refusal is not None:
            raise traced.refusal
    return _captured(graphs, training)


def _whole_backend(graphs: dict[str, Traced]) -> Callable[..., Any]:
    def build(traced: Traced) -> Callable[..., Any]:
        graphs[traced.part] = traced
        return traced.module

    def compile_graph(module: torch.fx.GraphModule, examples: Any) -> Callable[..., Any]:
        with inside.functorch_config.patch(force_non_lazy_backward_lowering=True):
            backend(build)(module, examples)
        return stop

    def stop(*_: Any) -> Any:
        raise _Enough

    return compile_graph


def _captured(graphs: dict[str, Traced], training: bool) -> Captured:
    texts, externals = {}, {}
    for part, traced in graphs.items():
        assert traced.written is not None
        texts[part] = _C.compiler_canonical(traced.written.text)
        externals["backward" if part == "backward" else "forward"] = traced.written.externals
    forward = texts.get("forward") or texts["inference"]
    return Captured(forward, texts.get("backward"), training, externals)
