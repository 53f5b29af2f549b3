# python/torch_graft/compiler/partitioning.py: cuts the joint graph into forward and backward.
"""PyTorch's min-cut partitioner, and what it leaves unsafe about inputs that the forward writes."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.marks import marks_of
from torch_graft.compiler.user_kernels import keep_results, kernels_of
from torch_graft.compiler.writer import device_of


def partition(
    joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward graph."""
    keep_results(kernels_of(joint.graph, device_of(joint.graph)))
    forward, backward = inside.min_cut_partition(
        joint, inputs, num_fwd_outputs=num_fwd_outputs, **options
    )
    _save_before_writes(forward, backward, num_fwd_outputs)
    for part in (forward, backward):
        _describe_random(part)
    return forward, backward


def _save_before_writes(forward: fx.GraphModule, backward: fx.GraphModule, returned: int) -> None:
    """The backward wants what an input held when the call began. Where the forward writes into that
    input at its end, a copy made before is saved in its place."""
    copies = forward.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    written = {_memory(node.args[0]) for node in copies}
    [output] = forward.graph.find_nodes(op="output")
    results = list(output.args[0])
    for position in range(returned, len(results)):
        saved = results[position]
        if not isinstance(saved, fx.Node) or _memory(saved) not in written:
            continue
        with forward.graph.inserting_before(copies[0]):
            copy = forward.graph.call_function(torch.ops.aten.clone.default, (saved,))
        copy.meta = {**saved.meta, "val": saved.meta["val"].clone()}
        copy.meta.pop("desc", None)
        results[position] = copy
        for node in backward.graph.find_nodes(op="placeholder"):
            if node.name == saved.name:
                node.meta.pop("desc", None)
    output.args = (tuple(results),)
    forward.recompile()


def _describe_random(part: fx.GraphModule) -> None:
    """The partitioner says nothing of the results of nodes that it gives a generator of their own."""
    own: Any = inside.graphsafe_run_with_rng_state
    for node in part.graph.find_nodes(op="call_function", target=own):
        operator, *given = fx.node.map_arg(node.args, lambda one: one.meta["val"])
        named = {key: one for key, one in node.kwargs.items() if key != "rng_state"}
        node.meta["val"] = operator(*given, **fx.node.map_arg(named, lambda one: one.meta["val"]))


def _memory(node: Any) -> Any:
    """The node whose memory a view lies in."""
    while node.op == "call_function" and isinstance(node.target, inside.OpOverload):
        base = marks_of(node).views
        if base is None:
            break
        node = base
    return node
