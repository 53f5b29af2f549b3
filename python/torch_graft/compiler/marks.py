# python/torch_graft/compiler/marks.py: what a node does beside computing its results.
"""Reads an operator's schema: what it writes, what its results share memory with, its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import fx

from torch_graft import _C
from torch_graft import private_names as inside
from torch_graft.compiler.refusal import refuse


class Marks(NamedTuple):
    """The marks of a node. views: the operand that the results share memory with."""

    writes: list[fx.Node]
    views: fx.Node | None
    random: bool
    opaque: bool


def marks_of(node: fx.Node) -> Marks:
    """Raises Refusal where results share memory with several operands."""
    operator: Any = node.target
    schema = inside.operator_schema(operator)
    writes: list[fx.Node] = []
    shared: list[fx.Node] = []
    returned = {name for one in schema.returns if one.alias_info
                for name in one.alias_info.before_set}  # fmt: skip
    for argument, value in _bound(schema, node):
        if argument.alias_info is None:
            continue
        operands = [one for one in _flat(value) if isinstance(one, fx.Node)]
        if argument.alias_info.is_write:
            writes += [one for one in operands if one not in writes]
        if returned & argument.alias_info.before_set:
            shared += [one for one in operands if one not in shared]
    if not shared and _C.compiler_is_view(str(operator)):  # what the schema hides
        shared = [node.all_input_nodes[0]]
    if len(shared) > 1:
        raise refuse(node, "its results share memory with several operands")
    random = torch.Tag.nondeterministic_seeded in operator.tags and not _without_dropout(node)
    effect = not schema.returns or node.is_impure(impure_random=False)
    return Marks(writes, shared[0] if shared else None, random, opaque=effect and not writes)


def _bound(schema: Any, node: fx.Node) -> Iterator[tuple[Any, Any]]:
    for position, argument in enumerate(schema.arguments):
        if argument.name in node.kwargs:
            yield argument, node.kwargs[argument.name]
        elif position < len(node.args) and not argument.kwarg_only:
            yield argument, node.args[position]


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _without_dropout(node: fx.Node) -> bool:
    """Attention is tagged as random whatever its dropout is."""
    schema: Any = inside.operator_schema(node.target)
    for argument in schema.arguments:
        if argument.name == "dropout_p":
            given = [value for one, value in _bound(schema, node) if one.name == "dropout_p"]
            return (given[0] if given else argument.default_value) == 0
    return False
