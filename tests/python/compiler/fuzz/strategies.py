# tests/python/compiler/fuzz/strategies.py: random programs as a strategy of Hypothesis.
"""Each node is computed as soon as it is drawn (values), so that the next one knows its operands' shapes,
dtypes and noise; what PyTorch refuses or the rules forbid is drawn again."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import count

from hypothesis import reject
from hypothesis import strategies as st

from operands import Scope
from operators import OPERATORS
from program import Node, Program
from trial import Way
from values import Unfit, check, start, step

# How many nodes. A program without any is none, so the simplest draw runs nothing.
_COUNTS = (*range(14), *range(3, 14), *range(3, 14), *range(3, 14), *range(3, 14), *range(3, 14))
_REFUSALS = (Unfit, RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)
_PATIENCE = 40


@st.composite
def _node(draw: st.DrawFn, scope: Scope, nodes: list[Node]) -> Node | None:
    """One node more; none where it may not stand."""
    kept = scope.sources, dict(scope.values)
    op = draw(st.sampled_from(sorted(OPERATORS)))
    try:
        operands, attributes = OPERATORS[op].propose(scope)
        node = Node(f"v{len(nodes)}", op, operands, attributes)
    except Unfit:
        scope.sources, scope.values = kept
        return None
    try:
        step(scope.values, node, scope.learning)
    except _REFUSALS:
        scope.sources, scope.values = kept
        if OPERATORS[op].writes:  # may have written
            scope.values = start(Program(scope.seed, scope.sources, (), ()))
            for one in nodes:
                step(scope.values, one, scope.learning)
        return None
    return node


def _grown(draw: st.DrawFn, scope: Scope) -> list[Node]:
    """Hypothesis drops from a smaller program what a filter refused, but a filter gives up after three:
    each third refusal counts as no node."""
    nodes: list[Node] = []
    refused = count(1)

    def drawn(node: Node | None) -> bool:
        return node is not None or next(refused) % 3 == 0

    wanted = draw(st.sampled_from(_COUNTS))
    for _ in range(_PATIENCE):
        if len(nodes) < wanted:
            node = draw(_node(scope, nodes).filter(drawn))
            nodes += [node] if node else []
    return nodes


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Of up to 13 nodes, mostly 3 or more. What no other node uses is an output, but for a few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scope = Scope(draw)
        nodes = _grown(draw, scope)
        used = {name for node in nodes for name in node.operands}
        outputs = [node.name for node in nodes
                   if (scope.odds(3, 1) if node.name in used else scope.odds(1, 31))]  # fmt: skip
        outputs += [scope.sources[0].name] if scope.odds(4, 1) else []
        outputs = outputs or [node.name for node in nodes[-1:]]
        program = Program(scope.seed, scope.sources, tuple(nodes), tuple(outputs)).cleaned()
        left = [one for one in program.idle() if not scope.odds(1, 15)]
        sources = tuple(one for one in program.sources if one not in left)
        program = replace(program, sources=sources)
        try:
            check(program)
        except (Unfit, RuntimeError):
            reject()
    if not program.nodes:
        reject()
    return program


@st.composite
def ways(draw: st.DrawFn) -> list[Way]:
    """Both, one of them with gradients and one without; one in four with symbols for sizes."""
    training = draw(st.booleans())
    dynamic = draw(st.sampled_from((False, False, False, True)))
    return [Way(False, training, dynamic), Way(True, not training, dynamic)]
