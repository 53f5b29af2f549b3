# python/torch_graft/compiler/tracing.py: from Dynamo's graph through AOTAutograd to texts.
"""A Dynamo backend whose compiled parts are built from texts. Imports Dynamo only when called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.attaching import attached_name
from torch_graft.compiler import decompositions
from torch_graft.compiler.higher_order import expand
from torch_graft.compiler.host_part import split
from torch_graft.compiler.partitioning import partition
from torch_graft.compiler.placing import device_among, name_devices, name_traced_devices
from torch_graft.compiler.refusal import Refusal
from torch_graft.compiler.size_numbers import compute_on_device
from torch_graft.compiler.user_kernels import compile_again_after_registrations, noting
from torch_graft.compiler.writer import Boundary, GraphText, write
from torch_graft.ve import NAME as SLOT

Runnable = Callable[..., Any]
_log = logging.getLogger("torch_graft.compiler")


class Traced(NamedTuple):
    """One graph of AOTAutograd. part: forward, backward or inference.

    Of written and refusal one is set: a graph that is refused stays eager, which is module.
    lays_out: what it saves for another graph may lie in memory otherwise than PyTorch has it.
    """

    part: str
    module: fx.GraphModule
    written: GraphText | None
    refusal: Refusal | None
    lays_out: bool


Build = Callable[[Traced], Runnable]


def backend(build: Build) -> Callable[[fx.GraphModule, Sequence[Any]], Runnable]:
    """What torch.compile(backend=...) takes. build makes of each graph what is called with the
    graph's inputs in their order and returns its outputs in theirs; of a backward graph also what
    takes them in one list, which it may empty, and says so by _boxed_call."""

    def compile_graph(module: fx.GraphModule, examples: Sequence[Any]) -> Runnable:
        for kind in (str(attached_name()), SLOT):
            inside.register_graphsafe_rng_device_type(kind)
        name_devices(module)
        expand(module)

        parameters = {position for position, one in enumerate(examples)
                      if isinstance(one, torch.nn.Parameter)}  # fmt: skip

        def compiler(part: str) -> Callable[[fx.GraphModule, Sequence[Any]], Runnable]:
            return lambda graph, given: _built(build, part, graph, given, parameters)

        device = device_among(module, examples)
        compile_again_after_registrations()
        make = inside.aot_autograd(
            fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
            inference_compiler=compiler("inference"), decompositions=decompositions.table(device),
            partition_fn=partition, keep_inference_input_mutations=True,
        )  # fmt: skip
        # Fake tensors of the slot have no key for autocast, unlike the slot's own tensors.
        with inside.including_key(inside.DispatchKey.AutocastPrivateUse1), noting(device):
            compiled: Runnable = make(module, examples)
        return compiled

    return compile_graph


def _built(
    build: Build, part: str, module: fx.GraphModule, given: Sequence[Any], parameters: set[int]
) -> Runnable:
    name_traced_devices(module)
    if part == "backward":
        _take_as_saved(module, given)
    parts = None if part == "backward" else split(module)
    if parts is not None:
        _log.debug("%s graph split: PyTorch computes %d numbers in host memory before the device's "
                   "part", part, len(parts.host.graph.find_nodes(op="output")[0].args[0]))  # fmt: skip
        module = parts.device
    compute_on_device(module)
    try:
        written, refusal = write(module, part, _boundary(part, module, parameters)), None
    except Refusal as error:
        written, refusal = None, error
    lays_out = part == "inference" or parts is None or parts.all_on_device()
    run = build(Traced(part, module, written, refusal, lays_out))
    if getattr(run, "_boxed_call", False):
        return run
    boxed: Runnable = inside.make_boxed_func(run if parts is None else parts.joined(run))
    return boxed


def _take_as_saved(module: fx.GraphModule, given: Sequence[Any]) -> None:
    """The forward graph lays out what it saves as it likes. The graph was traced before that was
    known, and goes on with copies in the layout that it was traced with."""
    inputs = module.graph.find_nodes(op="placeholder")
    first = next(node for node in module.graph.nodes if node.op != "placeholder")
    for node, saved in zip(inputs, given, strict=True):
        traced = node.meta.get("val")
        if not isinstance(saved, torch.Tensor) or saved is traced:
            continue
        with module.graph.inserting_before(first):
            copy = module.graph.call_function(
                torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
            )
        copy.meta["val"], node.meta["val"] = traced, saved
        node.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)
    module.recompile()


def _boundary(part: str, module: fx.GraphModule, parameters: set[int]) -> Boundary:
    metadata: Any = inside.TracingContext.get().fw_metadata
    static = set(metadata.static_input_indices)
    kinds, names = {}, {}
    for node in module.graph.find_nodes(op="placeholder"):
        described = node.meta.get("desc")
        position = getattr(described, "idx", None)
        names[described] = node.name
        kinds[node.name] = _kind(described, position, parameters, static)
    [output] = module.graph.find_nodes(op="output")
    given = output.args[0]
    count = len(given) if isinstance(given, list | tuple) else 1
    described = output.meta.get("desc") or [None] * count
    marks = [_output_mark(one, names) for one in described]
    return Boundary(kinds, marks, reads_numbers=part != "backward")


def _kind(described: Any, position: int | None, parameters: set[int], static: set[int]) -> str:
    if isinstance(described, inside.TangentAOTInput):
        return "tangent"
    if isinstance(described, inside.ParamAOTInput) or position in parameters:
        return "parameter"
    if isinstance(described, inside.BufferAOTInput) or position in static:
        return "buffer"
    return "activation"


def _output_mark(described: Any, names: dict[Any, str]) -> str:
    if isinstance(described, inside.SavedForBackwardsAOTOutput):
        return "saved"
    if isinstance(described, inside.InputMutationAOTOutput) and described.mutated_input in names:
        return f"mutation %{names[described.mutated_input]}"
    return ""
