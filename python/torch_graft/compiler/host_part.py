# python/torch_graft/compiler/host_part.py: what a graph computes with numbers in host memory.
"""Optimizers count their steps in 0-dim tensors on the CPU and write or only read them. These nodes
are run by PyTorch before the device's graph, which takes what they compute as numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_graft import private_names as inside
from torch_graft.compiler.writer import device_of

Runnable = Callable[..., Any]


class Parts(NamedTuple):
    """A graph in two. device takes the graph's inputs, then the numbers that host returns.

    takes: by input of host, which input of the graph. outputs: by output of the graph, where it
    comes from: (whether from host, position there).
    """

    host: fx.GraphModule
    device: fx.GraphModule
    takes: list[int]
    outputs: list[tuple[bool, int]]

    def all_on_device(self) -> bool:
        """Whether the device's part has the graph's outputs, all of them and in their order."""
        return not any(from_host for from_host, _ in self.outputs)

    def joined(self, run: Runnable) -> Runnable:
        """The whole graph, where run is the device's part."""

        def call(*given: Any) -> list[Any]:
            numbers = self.host(*(given[position] for position in self.takes))
            results = run(*given, *numbers)
            return [(numbers if from_host else results)[at] for from_host, at in self.outputs]

        return call


def split(module: fx.GraphModule) -> Parts | None:
    """None where nothing is computed from numbers in host memory."""
    if device_of(module.graph).type == "cpu":
        return None
    [output] = module.graph.find_nodes(op="output")
    chosen: set[fx.Node] = set()
    host: list[fx.Node] = []
    for node in module.graph.nodes:
        known = all(one.op == "placeholder" or one in chosen for one in node.all_input_nodes)
        if known and _on_host(node):
            chosen.add(node)
            host.append(node)
    # What the graph computes of nothing, such as a constant, the compiler writes into its kernels.
    if not any(node.all_input_nodes or output in node.users for node in host):
        return None
    inputs = module.graph.find_nodes(op="placeholder")
    wanted = [node for node in host if any(user not in chosen for user in node.users)]
    used = [node for node in inputs if any(user in chosen for user in node.users)]
    given = list(output.args[0])
    first = _copy(module, [*used, *host], [], wanted)
    rest = [node for node in module.graph.nodes if node not in chosen and node is not output]
    kept = [node for node in given if node not in chosen]
    second = _copy(
        module, [*inputs, *(one for one in rest if one.op != "placeholder")], wanted, kept
    )
    [end] = second.graph.find_nodes(op="output")
    described = output.meta.get("desc")
    if described is not None:
        end.meta["desc"] = [one for node, one in zip(given, described, strict=True)
                            if node not in chosen]  # fmt: skip
    places = [(True, wanted.index(node)) if node in chosen else (False, 0) for node in given]
    positions = iter(range(len(kept)))
    outputs = [place if place[0] else (False, next(positions)) for place in places]
    return Parts(first, second, [inputs.index(node) for node in used], outputs)


def _on_host(node: fx.Node) -> bool:
    """A node that takes and gives numbers in host memory and nothing else."""
    operators = inside.OpOverload, type(operator.getitem)
    computes = node.op == "call_function" and isinstance(node.target, operators)
    if not computes and node.op != "get_attr":
        return False
    values = inside.tree_leaves([one.meta.get("val") for one in (node, *node.all_input_nodes)])
    return all(isinstance(one, torch.Tensor) and one.device.type == "cpu" and one.dim() == 0
               for one in values)  # fmt: skip


def _copy(
    module: fx.GraphModule, nodes: Sequence[fx.Node], numbers: Sequence[fx.Node],
    results: Sequence[Any],
) -> fx.GraphModule:  # fmt: skip
    """A graph of these nodes; numbers become inputs behind the others."""
    graph = fx.Graph()
    twins: dict[fx.Node, fx.Node] = {}
    inputs = [node for node in nodes if node.op == "placeholder"]
    for node in inputs:
        twins[node] = graph.node_copy(node)
    for node in numbers:
        twins[node] = graph.placeholder(node.name)
        twins[node].meta = {"val": node.meta["val"]}
    for node in nodes:
        if node.op != "placeholder":
            twins[node] = graph.node_copy(node, lambda one: twins[one])
    graph.output(tuple(fx.node.map_arg(one, lambda node: twins[node]) for one in results))
    return fx.GraphModule(module, graph)
