# tests/python/compiler/fuzz/program.py: a random torch program as data, and the torch code that it is.
"""The code is what runs: what a failure prints is the very program that failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from operators import OPERATORS

Tensors = list[torch.Tensor]

# How an input lies in memory: how its base differs in shape, and the view of it.
LAYOUTS: dict[str, tuple[Callable[[tuple[int, ...]], tuple[int, ...]], str]] = {
    "plain": (lambda shape: shape, ""),
    "transposed": (lambda shape: shape[:-2] + shape[:-3:-1], ".mT"),
    "stepped": (lambda shape: (*shape[:-1], 2 * shape[-1]), "[..., ::2]"),
    "offset": (lambda shape: (shape[0] + 1, *shape[1:]), "[1:]"),
    "expanded": (lambda shape: (1, *shape[1:]), ".expand({shape})"),
    "channels_last": (lambda shape: shape, ".contiguous(memory_format=torch.channels_last)"),
}
LEAST_RANK = {"plain": 0, "transposed": 2, "stepped": 1, "offset": 1, "expanded": 1, "channels_last": 4}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """An input. distinct: no number twice, from 0 to high; else numbers from low to high."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "plain"
    learns: bool = False
    low: float = -1.5
    high: float = 1.5
    distinct: bool = False

    def code(self, seed: int) -> str:
        base, view = LAYOUTS[self.layout]
        shape = base(self.shape)
        draw = f"g.manual_seed({seed * 100 + int(self.name[1:])})"
        if self.distinct:
            numbers = f"torch.randperm({self.high:.0f}, generator={draw})[:{shape[0]}]"
        elif self.dtype == "int64":
            numbers = f"torch.randint({self.low:.0f}, {self.high:.0f}, {shape}, generator={draw})"
        else:
            numbers = f"torch.empty({shape}, dtype=torch.float32)"
            numbers += f".uniform_({self.low}, {self.high}, generator={draw})"
            numbers += " > 0" if self.dtype == "bool" else f".to(torch.{self.dtype})"
        learns = ".requires_grad_()" if self.learns else ""
        return f"({numbers}).to(device){view.format(shape=self.shape)}{learns}"


@dataclass(frozen=True)
class Node:
    """An operator of the table on values by their names; its attributes fill the operator's form."""

    name: str
    op: str
    operands: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    def expression(self) -> str:
        return OPERATORS[self.op].form.format(*self.operands, **self.attributes)


@dataclass(frozen=True)
class Program:
    seed: int
    sources: tuple[Source, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]

    def learns(self) -> bool:
        return any(one.learns for one in self.sources)

    def cleaned(self) -> Program:
        """Less the nodes that no output needs, and numbered anew, so that equal programs have one text.
        What writes stays: it shows in what it wrote."""
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if node.name in needed or OPERATORS[node.op].writes:
                needed.update(node.operands)
                kept.append(node)
        names = {node.name: f"v{at}" for at, node in enumerate(reversed(kept))}
        nodes = tuple(
            Node(names[one.name], one.op, tuple(names.get(name, name) for name in one.operands), one.attributes)
            for one in reversed(kept))  # fmt: skip
        outputs = tuple(names.get(name, name) for name in self.outputs)
        return Program(self.seed, self.sources, nodes, outputs)

    def idle(self) -> list[Source]:
        """The inputs that nothing uses."""
        used = {*self.outputs, *(name for node in self.nodes for name in node.operands)}
        return [one for one in self.sources if one.name not in used]

    def code(self) -> str:
        given = ", ".join(one.name for one in self.sources)
        lines = ["import torch", "from torch.nn import functional as F", "",
                 "def inputs(device):", "    g = torch.Generator()"]  # fmt: skip
        lines += [f"    {one.name} = {one.code(self.seed)}" for one in self.sources]
        lines += [f"    return [{given}]", "", f"def program({given}):"]
        lines += [f"    {one.name} = {one.expression()}" for one in self.nodes]
        return "\n".join([*lines, f"    return [{', '.join(self.outputs)}]", ""])

    def build(self) -> tuple[Callable[[str], Tensors], Callable[..., tuple[torch.Tensor, ...]]]:
        """What makes the inputs on a device, and the function."""
        return _built(self.code())

    def reference(self) -> tuple[Callable[[str], Tensors], Callable[..., Any]]:
        """The same numbers computed in float64; to be called under its default dtype."""
        made, computed = self.code().split("def program")
        made = re.sub(r"(\.to\(torch\.\w+\))", r"\1.double()", made)
        return _built(made + "def program" + doubled(computed))


def doubled(code: str) -> str:
    return re.sub(r"torch\.(float32|bfloat16|float16)", "torch.float64", code)


def _built(code: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(code, "<fuzz>", "exec"), names)
    return names["inputs"], names["program"]
