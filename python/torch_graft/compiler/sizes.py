# python/torch_graft/compiler/sizes.py: symbolic whole numbers in the text form.
"""Writes the shape environment's expressions and lists the symbols that a graph uses."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_WORDS = {"true", "false", "none", "inf", "nan"}
_LARGEST = 2**63 - 1
# PyTorch's functions on sizes that the text form has under another name.
_BINARY = {"FloorDiv": "floordiv", "CleanDiv": "floordiv", "Mod": "mod", "PythonMod": "mod"}
_FOLDED = {"Max": "max", "Min": "min"}


class Inexpressible(ValueError):
    """A number that the text form cannot say; the message says why."""


class Symbol(NamedTuple):
    """What the text form says of a symbol, apart from where its value comes from."""

    low: int
    high: int | None
    hint: int


class Sizes:
    """The sizes of one graph: their text, and the symbols met on the way, in that order."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}

    def text(self, number: int | torch.SymInt) -> str:
        """The expression of a size. Raises Inexpressible."""
        if isinstance(number, torch.SymInt):
            node = number.node
            return self._expression(node.expr, node.shape_env)
        return str(int(number))

    def _expression(self, expression: Any, environment: Any) -> str:
        if expression.is_Integer:
            return str(int(expression))
        if expression.is_Symbol:
            return self._symbol(expression, environment)
        kind = type(expression).__name__
        if kind == "Add":
            return " + ".join(self._factor(one, environment) for one in expression.args)
        if kind == "Mul":
            return "*".join(self._factor(one, environment) for one in expression.args)
        if kind in ("Pow", "PowByNatural"):
            return self._power(expression, environment)
        parts = [self._expression(one, environment) for one in expression.args]
        if kind in _BINARY:
            return f"{_BINARY[kind]}({parts[0]}, {parts[1]})"
        if kind == "CeilDiv":
            return f"(-1)*floordiv((-1)*({parts[0]}), {parts[1]})"
        if kind == "ModularIndexing":
            return f"mod(floordiv({parts[0]}, {parts[1]}), {parts[2]})"
        if kind in _FOLDED:
            text = parts[0]
            for part in parts[1:]:
                text = f"{_FOLDED[kind]}({text}, {part})"
            return text
        raise Inexpressible(f"the size {expression} uses {kind}, which the text form lacks")

    def _factor(self, expression: Any, environment: Any) -> str:
        return f"({self._expression(expression, environment)})"

    def _power(self, expression: Any, environment: Any) -> str:
        base, exponent = expression.args
        if not exponent.is_Integer or not 0 < int(exponent) <= 16:
            raise Inexpressible(f"the size {expression} is not a power of 1 to 16")
        return "*".join([self._factor(base, environment)] * int(exponent))

    def _symbol(self, symbol: Any, environment: Any) -> str:
        name = str(symbol)
        if name not in self.symbols:
            if not name.isidentifier() or not name.isascii() or name in _WORDS:
                raise Inexpressible(f"{name} cannot name a size")
            self.symbols[name] = _facts(symbol, environment)
        return name


def _facts(symbol: Any, environment: Any) -> Symbol:
    bounds = environment.var_to_range[symbol]
    low = _bound(bounds.lower)
    high = _bound(bounds.upper)
    low = 0 if low is None or low < 0 else low
    hint = environment.backed_var_to_val.get(symbol)
    known = low if hint is None else int(hint)
    return Symbol(low, high, max(low, known if high is None else min(known, high)))


def _bound(number: Any) -> int | None:
    if not getattr(number, "is_Integer", False):
        return None  # one of PyTorch's infinities
    whole = int(number)
    return whole if abs(whole) < _LARGEST else None
