# python/torch_graft/compiler/refusal.py: the error for what the text form cannot say.
"""A graph with such a part stays eager; the error tells which part and where it comes from."""

from __future__ import annotations

from torch import fx

from torch_graft.compiler.user_line import user_line


class Refusal(RuntimeError):
    """The graph compiler does not take this graph. The message names node and source line."""


def refuse(node: fx.Node, what: str) -> Refusal:
    """The error for a node: `raise refuse(node, "a complex number as an argument")`."""
    operator = str(node.target) if node.op == "call_function" else node.op
    line = user_line(node)
    place = f"{operator}, {line}" if line else operator
    return Refusal(f"the graph compiler does not take %{node.name} ({place}): {what}")
