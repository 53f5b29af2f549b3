# tests/python/compiler/fuzz/shrinking.py: a failing program, made as small as it still fails.
"""Delta debugging (Zeller and Hildebrandt 2002, doi 10.1109/32.988498), greedily: of all programs one step
smaller the first that still fails is taken, until none does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from program import Node, Program, Source
from values import Unfit, Values, check

# What a program that breaks PyTorch's own rules raises.
_REFUSALS = (Unfit, RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, KeyError)


def cleaned(program: Program) -> Program:
    """Less what no output needs. What writes stays: it shows in what it wrote."""
    from operators import OPERATORS

    needed, kept = set(program.outputs), []
    for node in reversed(program.nodes):
        if node.name in needed or OPERATORS[node.op].writes:
            needed.update(node.operands)
            kept.append(node)
    sources = tuple(one for one in program.sources if one.name in needed)
    return Program(program.seed, sources, tuple(reversed(kept)), program.outputs)


def _renamed(program: Program, old: str, new: str) -> Program:
    def other(name: str) -> str:
        return new if name == old else name

    nodes = tuple(replace(one, operands=tuple(map(other, one.operands)))
                  for one in program.nodes if one.name != old)  # fmt: skip
    outputs = tuple(dict.fromkeys(map(other, program.outputs)))
    return Program(program.seed, program.sources, nodes, outputs)


def _fewer_outputs(program: Program) -> Iterator[Program]:
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=(name,))
        for name in program.outputs:
            yield replace(program, outputs=tuple(one for one in program.outputs if one != name))


def _fewer_nodes(program: Program, values: Values) -> Iterator[Program]:
    """A node is left out, or one of its operands or a new input stands for it."""
    for node in reversed(program.nodes):
        if all(node.name not in one.operands for one in program.nodes):
            outputs = tuple(one for one in program.outputs if one != node.name) or node.operands[:1]
            nodes = tuple(one for one in program.nodes if one is not node)
            yield replace(program, nodes=nodes, outputs=outputs)
        for operand in node.operands:
            if values[operand].native.shape == values[node.name].native.shape:
                yield _renamed(program, node.name, operand)
        yield _as_input(program, node, values)


def _as_input(program: Program, node: Node, values: Values) -> Program:
    value = values[node.name].native
    name = f"a{1 + max([int(one.name[1:]) for one in program.sources], default=0)}"
    whole = {"low": 0, "high": 2} if not value.is_floating_point() else {}
    source = Source(name, tuple(value.shape), str(value.dtype).removeprefix("torch."),
                    learns=value.requires_grad, **whole)  # fmt: skip
    renamed = _renamed(program, node.name, name)
    outputs = tuple(one for one in renamed.outputs if one != name) or renamed.outputs
    return replace(renamed, sources=(*program.sources, source), outputs=outputs)


def _simpler_inputs(program: Program) -> Iterator[Program]:
    for at, one in enumerate(program.sources):
        changes: list[Source] = []
        if one.layout != "plain":
            changes.append(replace(one, layout="plain"))
        if one.learns:
            changes.append(replace(one, learns=False))
        if one.dtype in ("bfloat16", "float16"):
            changes.append(replace(one, dtype="float32"))
        for other in changes:
            sources = (*program.sources[:at], other, *program.sources[at + 1 :])
            yield replace(program, sources=sources)
        for other_source in program.sources[:at]:
            yield _renamed(program, one.name, other_source.name)
    if any(one.dtype in ("bfloat16", "float16") for one in program.sources):
        yield replace(program, sources=tuple(
            replace(one, dtype="float32") if one.dtype in ("bfloat16", "float16") else one
            for one in program.sources))  # fmt: skip


def _smaller(program: Program) -> Iterator[Program]:
    """A size becomes a smaller one, in all inputs or in one dimension; dimensions of one go."""
    for size in sorted({n for one in program.sources for n in one.shape}, reverse=True):
        for less in [one for one in (1, 2, size // 2) if 0 < one < size]:
            yield replace(program, sources=tuple(
                replace(one, shape=tuple(less if n == size else n for n in one.shape))
                for one in program.sources))  # fmt: skip
    for at, one in enumerate(program.sources):
        shapes = [(*one.shape[:d], *one.shape[d + 1 :]) for d, n in enumerate(one.shape) if n == 1]
        shapes += [(*one.shape[:d], less, *one.shape[d + 1 :])
                   for d, n in enumerate(one.shape) for less in (1, 2, n // 2) if 0 < less < n]  # fmt: skip
        for shape in shapes:
            other = replace(one, shape=shape, layout="plain")
            yield replace(program, sources=(*program.sources[:at], other, *program.sources[at + 1 :]))  # fmt: skip


def steps(program: Program, values: Values) -> Iterator[Program]:
    """All programs one step smaller."""
    yield from _fewer_outputs(program)
    yield from _fewer_nodes(program, values)
    yield from _simpler_inputs(program)
    yield from _smaller(program)


def shrink(program: Program, fails: Callable[[Program], bool], most: int = 250) -> Program:
    """The smallest that was found with at most that many questions; `fails` is asked only about
    programs that keep to the rules."""
    asked, seen = 0, {program.code()}
    while True:
        for candidate in steps(program, check(program).values):
            smaller = cleaned(candidate)
            if smaller.code() in seen or not smaller.outputs:
                continue
            seen.add(smaller.code())
            try:
                check(smaller)
            except _REFUSALS:
                continue
            if asked == most:
                return program
            asked += 1
            if fails(smaller):
                program = smaller
                break
        else:
            return program
