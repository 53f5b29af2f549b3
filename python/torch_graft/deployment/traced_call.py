# python/torch_graft/deployment/traced_call.py: the graph of one call, and where its inputs come from.
"""Runs a call through Dynamo once. Raises NotDeployable for what would need PyTorch at each call."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.assembling import compiled
from torch_graft.compiler.calling import patient
from torch_graft.compiler.tracing import Traced, backend
from torch_graft.compiler.writer import GraphText

_INPUT = re.compile(r"^input .*$", re.MULTILINE)


class NotDeployable(RuntimeError):
    """The model cannot run without PyTorch. The message says what does not, and the line."""


class TracedCall(NamedTuple):
    """A call as one graph. By input of the graph: the place of an argument, or the weight's name.

    integers: sizes of arguments (argument, dimension) that the graph takes as integers. weights:
    as they were before the call.
    """

    written: GraphText
    inputs: list[int | str]
    integers: list[tuple[int, int]]
    weights: dict[str, torch.Tensor]
    outputs: list[torch.Tensor]
    result: Any


class _Run(NamedTuple):
    """What Dynamo handed to its backend's function, and what that gave. written: by place among
    the tensors of given, those that the graph writes, and what they were."""

    module: fx.GraphModule
    given: tuple[Any, ...]
    results: Sequence[Any]
    written: dict[int, torch.Tensor]


def trace(
    model: torch.nn.Module, forward: Callable[..., Any], args: tuple[Any, ...],
    kwargs: Mapping[str, Any], dynamic: bool | None,
) -> TracedCall:  # fmt: skip
    """The graph of forward(*args, **kwargs), which runs once. Call under torch.no_grad(). Tensors
    that the call writes are what they were, after it."""
    graphs: list[Traced] = []
    runs: list[_Run] = []

    def build(traced: Traced) -> Callable[..., Any]:
        graphs.append(traced)
        run = compiled(traced)
        return lambda *inputs: run(list(inputs))

    def observe(module: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        function = backend(build)(module, examples)

        def call(*given: Any) -> Any:
            tensors = [one for one in given if isinstance(one, torch.Tensor)]
            before = {place: tensors[place].clone() for place in _written(graphs)}
            results = function(*given)
            for place, value in before.items():
                tensors[place].copy_(value)
            runs.append(_Run(module, given, results, before))
            return results

        return call

    def call(*given: Any, **named: Any) -> Any:
        return forward(*given, **named)

    through_dynamo = torch.compile(call, backend=observe, fullgraph=True, dynamic=dynamic)
    with patient(), small_operators():
        result = through_dynamo(*args, **kwargs)
    if len(runs) != 1 or len(graphs) != 1:
        raise NotDeployable(
            f"a call of {type(model).__name__} runs {len(runs)} graphs in {len(graphs)} parts, a "
            "deployed model has one: let forward() compute tensors from its arguments"
        )
    return _sorted(model, args, kwargs, graphs[0], runs[0], result)


def _written(graphs: list[Traced]) -> list[int]:
    """Which tensors a call's graph writes, among those that it takes."""
    texts = [one.written.text for one in graphs if one.written is not None]
    if len(texts) != 1:
        return []
    inputs = _INPUT.findall(texts[0])
    return [place for place, line in enumerate(inputs) if " mutated" in line]


@contextlib.contextmanager
def small_operators() -> Iterator[None]:
    """Layers of transformers as the operators that they consist of, not as one of PyTorch's."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _sorted(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], traced: Traced,
    run: _Run, result: Any,
) -> TracedCall:  # fmt: skip
    assert traced.written is not None
    _check_same_ends(model, traced, run)
    weights = tensors_of(model)
    names = {id(tensor): name for name, tensor in reversed(weights.items())}
    arguments = [one for one in inside.tree_leaves((args, dict(kwargs)))
                 if isinstance(one, torch.Tensor)]  # fmt: skip
    places = {id(tensor): place for place, tensor in enumerate(arguments)}
    inputs: list[int | str] = []
    used: dict[str, torch.Tensor] = {}
    tensors = [one for one in run.given if isinstance(one, torch.Tensor)]
    for place, tensor in enumerate(tensors):
        if id(tensor) in places:
            if place in run.written:
                raise NotDeployable(
                    f"a call of {type(model).__name__} writes to an argument: make it a buffer of "
                    "the model, which is kept between calls"
                )
            inputs.append(places[id(tensor)])
            continue
        name = names.get(id(tensor), f"captured.{len(used)}")
        inputs.append(name)
        used[name] = run.written.get(place, tensor)
    outputs = [one for one in run.results if isinstance(one, torch.Tensor)]
    integers = _integers(run, arguments)
    return TracedCall(traced.written, inputs, integers, used, outputs, result)


def _check_same_ends(model: torch.nn.Module, traced: Traced, run: _Run) -> None:
    """AOTAutograd's graph must take and give what Dynamo's does: nothing is copied back or viewed."""
    name = type(model).__name__
    inputs = len(traced.module.graph.find_nodes(op="placeholder"))
    [output] = traced.module.graph.find_nodes(op="output")
    if any(isinstance(one, torch.Generator) for one in run.given):
        raise NotDeployable(f"{name} draws random numbers of a generator of its own")
    assert traced.written is not None
    if inputs != len(run.given) or len(output.args[0]) != len(run.results):
        raise NotDeployable(
            f"a call of {name} changes more than the elements of a tensor (its sizes, or memory that "
            "two of its tensors share), or computes with numbers in host memory, which a deployed "
            "model cannot do: let it return what it computes"
        )
    if not all(isinstance(one, torch.Tensor) for one in run.results):
        raise NotDeployable(f"a call of {name} computes a number, a deployed model gives tensors")


def tensors_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, buffers and other tensors that modules have as attributes, by their path."""
    found: dict[str, torch.Tensor] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        held = (inside.module_parameters(module), inside.module_buffers(module), vars(module))
        for name, value in (pair for values in held for pair in values.items()):
            if isinstance(value, torch.Tensor):
                found[f"{path}.{name}" if path else name] = value
    return found


def _integers(run: _Run, arguments: list[torch.Tensor]) -> list[tuple[int, int]]:
    """By integer of the call, which size of which argument it is."""
    nodes = run.module.graph.find_nodes(op="placeholder")
    places = {id(tensor): place for place, tensor in enumerate(arguments)}
    known: dict[str, tuple[int, int]] = {}
    for node, given in zip(nodes, run.given, strict=True):
        if isinstance(given, torch.Tensor) and id(given) in places:
            for dim, size in enumerate(node.meta["example_value"].shape):
                known.setdefault(str(size), (places[id(given)], dim))
    found = []
    for node, given in zip(nodes, run.given, strict=True):
        if isinstance(given, torch.Tensor):
            continue
        size = str(node.meta["example_value"])
        if size not in known:
            raise NotDeployable(
                f"the number {given} of the call is no size of an argument: a deployed model takes "
                "tensors, and numbers that are part of the model"
            )
        found.append(known[size])
    return found
