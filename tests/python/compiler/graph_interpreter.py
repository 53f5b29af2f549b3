"""Runs a graph's text, line by line, with torch.ops: the reference for what the passes make."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

_TOKEN = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|%\w+|@[\w:]+|-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)|-?inf\b|nan\b'
    r"|\d+|[A-Za-z_][\w.]*|\.\.|[^\s\w])"
)
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min,
}  # fmt: skip


class _Line:
    """The words of one statement, read from the left. Symbols have the values of this call."""

    def __init__(self, text: str, values: dict[str, torch.Tensor], symbols: dict[str, int]) -> None:
        self.words = _TOKEN.findall(text)
        self.values, self.symbols = values, symbols
        self.at = 0

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def next(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def accept(self, word: str) -> bool:
        found = self.peek() == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        assert self.accept(word), f"expected {word!r}, found {self.peek()!r} in {self.words}"

    def size(self) -> int:
        negative = self.accept("-")
        total = -self._term() if negative else self._term()
        while self.peek() in ("+", "-"):
            total += self._term() if self.next() == "+" else -self._term()
        return total

    def _term(self) -> int:
        product = self._factor()
        while self.accept("*"):
            product *= self._factor()
        return product

    def _factor(self) -> int:
        if self.accept("("):
            inner = self.size()
            self.expect(")")
            return inner
        word = self.next()
        if word in _FUNCTIONS:
            self.expect("(")
            first = self.size()
            self.expect(",")
            second = self.size()
            self.expect(")")
            return _FUNCTIONS[word](first, second)
        return int(word) if word.isdigit() else self.symbols[word]

    def many(self, close: str, read: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def type(self) -> tuple[torch.dtype, list[int], list[int] | None]:
        dtype = getattr(torch, self.next())
        self.expect("[")
        sizes = self.many("]", self.size)
        strides = self.many(")", self.size) if self.accept("(") else None
        return dtype, sizes, strides

    def literal(self) -> Any:
        word = self.peek()
        if word == "[":
            self.next()
            return self.many("]", self.literal)
        if word in ("true", "false", "none"):
            return {"true": True, "false": False, "none": None}[self.next()]
        if word[0] == "%":
            return self.values[self.next()[1:]]
        if word[0] == "@":
            return _word(self.next()[1:])
        if word[0] == '"':
            return re.sub(
                r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), self.next()[1:-1]
            )
        if "inf" in word or word == "nan" or re.fullmatch(r"-?\d+(\.|e|\.\d*e).*", word):
            return float(self.next())
        return self.size()

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        self.expect("(")
        while not self.accept(")"):
            if positional or named:
                self.expect(",")
            if self.words[self.at + 1] == "=":
                name = self.next()
                self.expect("=")
                named[name] = self.literal()
            else:
                positional.append(self.literal())
        return positional, named


def _attention(query: Any, key: Any, value: Any, bias: Any, *_: Any, scale: float) -> list[Any]:
    scores = query @ key.mT * scale + (0 if bias is None else bias)
    return [scores.softmax(-1) @ value, scores.logsumexp(-1), *[None] * 7]


# Operators that no kernel of the CPU computes.
_ON_CPU: dict[str, Callable[..., Any]] = {
    "aten._scaled_dot_product_fused_attention_overrideable.default": _attention
}


def _word(word: str) -> Any:
    if re.match(r"(cpu|graft|meta)\b", word):
        return torch.device(word)
    return getattr(torch, word)


class Interpreter:
    """A text as a function of the graph's inputs (integers among them), in their order.

    After each node it checks that dtype, sizes and, in a text that no pass changed, strides are
    those that the text says.
    """

    def __init__(self, text: str, externals: dict[str, torch.Tensor], strides: bool) -> None:
        self.lines = [line for line in text.splitlines() if line and line[0] != "#"]
        self.externals = externals
        self.strides = strides
        self.operators: dict[str, int] = {}

    def of(self, keyword: str) -> list[str]:
        return [line[len(keyword) + 1 :] for line in self.lines if line.startswith(keyword + " ")]

    def __call__(self, *given: Any) -> list[Any]:
        self.values: dict[str, torch.Tensor] = {}
        self.symbols: dict[str, int] = {}
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        integers = [one for one in given if not isinstance(one, torch.Tensor)]
        inputs = self.of("input")
        assert len(inputs) == len(tensors), (inputs, [one.shape for one in tensors])
        for line, tensor in zip(inputs, tensors, strict=True):
            self.values[line.split(":")[0][1:]] = tensor
        device = next((one.device for one in tensors if one.device.type != "cpu"), None)
        self.device = device or torch.device("cpu")
        for line in self.of("symbol"):
            self.symbol(line, integers)
        for line, tensor in zip(inputs, tensors, strict=True):
            self.check(line, self.line(line.split(":", 1)[1]), tensor)
        with torch.no_grad():
            for line in self.of("constant"):
                self.constant(line)
            for line in self.of("node"):
                self.node(line)
        return [self.output(line) for line in self.of("output")]

    def line(self, text: str) -> _Line:
        return _Line(text, self.values, self.symbols)

    def symbol(self, text: str, integers: Sequence[int]) -> None:
        found = re.fullmatch(
            r"(\w+) range (-?\d+)\.\.(\S+) hint \d+ from (?:integer (\d+)|%(\w+)\[(\d+)\])", text
        )
        assert found, text
        name, low, high, integer, value, dim = found.groups()
        if value is not None and value not in self.values:
            return  # a node's result tells it
        number = int(integers[int(integer)]) if integer else self.values[value].shape[int(dim)]
        assert int(low) <= number, text
        assert high == "inf" or number <= int(high), text
        self.symbols[name] = number

    def check(self, text: str, line: _Line, tensor: torch.Tensor) -> None:
        dtype, sizes, strides = line.type()
        assert tensor.dtype == dtype, f"{text}: {tensor.dtype}"
        assert list(tensor.shape) == sizes, f"{text}: {tuple(tensor.shape)}"
        if not self.strides or tensor.numel() == 0:
            return
        plain = torch.empty(sizes, device="meta").stride() if strides is None else strides
        real = [
            (a, b) for a, b, size in zip(tensor.stride(), plain, sizes, strict=True) if size > 1
        ]
        assert all(a == b for a, b in real), f"{text}: {tensor.stride()}"

    def constant(self, text: str) -> None:
        name, rest = text[1:].split(":", 1)
        line = self.line(rest)
        dtype, sizes, strides = line.type()
        if line.accept("external"):
            self.values[name] = self.externals[line.next()[1:-1]]
            return
        line.expect("=")
        data = line.literal()
        tensor = torch.tensor(data, dtype=dtype, device=self.device)
        if len(data) == 1 and strides is not None:
            extent = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
            self.values[name] = tensor.repeat(max(extent, 1)).as_strided(sizes, strides)
            return
        tensor = tensor[0].expand(sizes) if len(data) == 1 else tensor.reshape(sizes)
        placed = tensor.clone(memory_format=torch.contiguous_format)
        if strides is not None:
            placed = torch.empty_strided(sizes, strides, dtype=dtype, device=self.device)
            placed.copy_(tensor)
        self.values[name] = placed

    def node(self, text: str) -> None:
        results, rest = re.match(r"(.*?)\s?= (\w+\..*)", text).groups()  # type: ignore[union-attr]
        operator, rest = rest.split("(", 1)
        self.operators[operator] = self.operators.get(operator, 0) + 1
        called: Any = torch.ops
        for part in operator.split("."):
            called = getattr(called, part)
        if self.device.type == "cpu":
            called = _ON_CPU.get(operator, called)
        positional, named = self.line("(" + rest).arguments()
        outcome = called(*positional, **named)
        got = list(outcome) if isinstance(outcome, list | tuple) else [outcome]
        line = self.line(results)
        for position, tensor in enumerate(got):
            if not line.peek():
                break  # a list of results that the text leaves out
            if position:
                line.expect(",")
            if line.accept("none"):
                continue
            name = line.next()[1:]
            line.expect(":")
            self.values[name] = tensor
            for symbol in self.of("symbol"):
                if f"from %{name}[" in symbol:
                    self.symbol(symbol, [])
            if tensor is None:  # a workspace that the meta function promises and no kernel fills
                line.type()
            else:
                self.check(text, line, tensor)

    def output(self, text: str) -> Any:
        line = self.line(text)
        return line.literal()
