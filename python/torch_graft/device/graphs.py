# python/torch_graft/device/graphs.py: captured graphs as torch.cuda offers them.
"""Captures work once and replays it without Python; see docs/use/graphs.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch

from torch_graft import _C
from torch_graft import private_names as inside

Graph = torch.accelerator.Graph
Pool = tuple[int, int]
Callables = Callable[..., Any] | tuple[Callable[..., Any], ...]


def is_current_stream_capturing() -> bool:
    """Whether the current stream captures a graph."""
    return bool(_C.is_capturing())


def graph_pool_handle() -> Pool:
    """A memory pool for graphs that never run at the same time."""
    return _C.new_pool()


@contextmanager
def graph(
    graph: torch.accelerator.Graph, pool: Pool | None = None,
    stream: torch.Stream | None = None, capture_error_mode: str = "default",
) -> Iterator[None]:  # fmt: skip
    """Captures what the block does on a stream of its own, or the one given, into graph."""
    side = (
        torch.Stream(device=torch.accelerator.current_accelerator()) if stream is None else stream
    )
    before = torch.accelerator.current_stream()
    if pool is not None:
        graph.graph_pool = pool
    graph.capture_error_mode = capture_error_mode
    side.wait_stream(before)
    with side, graph:
        yield
    before.wait_stream(side)


def make_graphed_callables(
    callables: Callables, sample_args: tuple[Any, ...], num_warmup_iters: int = 3,
    allow_unused_input: bool = False, pool: Pool | None = None,
) -> Callables:  # fmt: skip
    """Functions or modules that replay captured graphs, forward and backward.

    sample_args: the arguments of each, in the shapes, dtypes and requires_grad of all later calls.
    Several callables run, forward and backward, in the order given: they share a memory pool.
    """
    one = not isinstance(callables, tuple)
    several = callables if isinstance(callables, tuple) else (callables,)
    samples = (sample_args,) if one else sample_args
    if len(samples) != len(several):
        raise ValueError(f"{len(several)} callables need as many sample_args, got {len(samples)}")
    pool = graph_pool_handle() if pool is None else pool
    parts = [_Part(each, args, allow_unused_input, pool)
             for each, args in zip(several, samples, strict=True)]  # fmt: skip
    side = torch.Stream(device=torch.accelerator.current_accelerator())
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        for part in parts:
            part.warm_up(num_warmup_iters)
    torch.accelerator.synchronize()
    for part in parts:
        part.capture_forward()
    for part in reversed(parts):
        part.capture_backward()
    results = tuple(part.result() for part in parts)
    return results[0] if one else results


class _Part:
    """One callable on its way to a pair of graphs."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], allow_unused: bool, pool: Pool
    ) -> None:
        self.function = function
        self.args = tuple(args)
        flat, self.spec_in = inside.tree_flatten(self.args)
        if not all(isinstance(one, torch.Tensor) for one in flat):
            raise TypeError("make_graphed_callables takes tensors, alone or in lists and dicts")
        self.allow_unused = allow_unused
        self.pool = pool
        # For both captures: each node of a backward runs on the stream of its forward.
        self.stream = torch.Stream(device=torch.accelerator.current_accelerator())
        module = isinstance(function, torch.nn.Module)
        self.module = cast(torch.nn.Module, function) if module else None
        if self.module is not None:
            self._refuse_hooks(self.module)
        self.parameters = tuple(self.module.parameters()) if self.module is not None else ()
        self.inputs: list[torch.Tensor] = flat
        self.wanted = [one for one in (*flat, *self.parameters) if one.requires_grad]

    @staticmethod
    def _refuse_hooks(module: torch.nn.Module) -> None:
        kinds = (inside.module_backward_hooks, inside.module_forward_hooks,
                 inside.module_forward_pre_hooks)  # fmt: skip
        for one in module.modules():
            if any(hooks(one) for hooks in kinds):
                raise RuntimeError(
                    "make_graphed_callables takes modules without hooks, which a replay would "
                    "not call: register them on the result."
                )
        if any(buffer.requires_grad for buffer in module.buffers()):
            raise RuntimeError(
                "make_graphed_callables takes modules whose buffers need no gradient"
            )

    def warm_up(self, rounds: int) -> None:
        for _ in range(rounds):
            outputs, _ = inside.tree_flatten(self.function(*self.args))
            roots = [one for one in outputs if one.requires_grad]
            if roots and self.wanted:
                torch.autograd.grad(
                    roots, self.wanted, [torch.empty_like(one) for one in roots],
                    allow_unused=self.allow_unused,
                )  # fmt: skip

    def capture_forward(self) -> None:
        self.forward = Graph()
        with graph(self.forward, self.pool, self.stream):
            outputs = self.function(*self.args)
        self.outputs, self.spec_out = inside.tree_flatten(outputs)

    def capture_backward(self) -> None:
        self.roots = [one for one in self.outputs if one.requires_grad]
        self.gradients_in = [torch.empty_like(one) if one.requires_grad else None
                             for one in self.outputs]  # fmt: skip
        self.backward = Graph()
        found: tuple[torch.Tensor | None, ...] = ()
        if self.roots and self.wanted:
            with graph(self.backward, self.pool, self.stream):
                found = torch.autograd.grad(
                    self.roots, self.wanted, [one for one in self.gradients_in if one is not None],
                    allow_unused=self.allow_unused,
                )  # fmt: skip
        given = iter(found)
        every = (*self.inputs, *self.parameters)
        self.gradients_out = [next(given, None) if one.requires_grad else None for one in every]

    def result(self) -> Callable[..., Any]:
        replayed = _replaying(self)

        def call(*args: Any) -> Any:
            flat, spec = inside.tree_flatten(args)
            if spec != self.spec_in:
                raise ValueError(f"expected arguments like the sample, {self.spec_in}, got {spec}")
            outputs = replayed.apply(*flat, *self.parameters)
            return inside.tree_unflatten(outputs, self.spec_out)

        if self.module is None:
            return call
        return _graphed_module(self.module, call)


def _graphed_module(module: torch.nn.Module, call: Callable[..., Any]) -> torch.nn.Module:
    """The module with a forward that replays while it is in the mode that was captured."""
    captured, forward = module.training, module.forward

    def replay_or_run(*args: Any) -> Any:
        return call(*args) if module.training == captured else forward(*args)

    module.forward = replay_or_run
    return module


def _replaying(part: _Part) -> type[torch.autograd.Function]:
    class Replayed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            for static, one in zip(part.inputs, given, strict=False):
                if static.data_ptr() != one.data_ptr():
                    static.copy_(one)
            part.forward.replay()
            # A leaf may keep its gradient, which the next replay would overwrite.
            ctx.leaves = [one.is_leaf for one in given]
            return tuple(one.detach() for one in part.outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            for static, one in zip(part.gradients_in, gradients, strict=True):
                if static is not None and static.data_ptr() != one.data_ptr():
                    static.copy_(one)
            part.backward.replay()
            return tuple(
                one if one is None else one.clone() if leaf else one.detach()
                for one, leaf in zip(part.gradients_out, ctx.leaves, strict=True)
            )

    return Replayed
