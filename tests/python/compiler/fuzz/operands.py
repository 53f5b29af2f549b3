# tests/python/compiler/fuzz/operands.py: the values so far, and what an operator draws from them.
"""Hypothesis draws each choice and makes it smaller when a program fails, towards the first of a list and
towards 0: the simpler choice stands first, and the older value before the newer one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch
from hypothesis import strategies as st

from operators import FLOATS, Proposal
from program import LAYOUTS, LEAST_RANK, Program, Source
from values import Unfit, Values, start

_SIZES = (1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8)
_SIZES_OF_FOUR = (1, 1, 2, 2, 3, 3, 4, 4, 5)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class Scope:
    """A program as far as it is drawn: its inputs and its values."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.seed = self.number(0, 255)
        self.learning = self.odds(2, 3)
        self.dtype = self.choose(("float32", "float32", *FLOATS))
        self.sources: tuple[Source, ...] = ()
        self.values: Values = {}
        for _ in range(self.choose((1, 2, 3, 3))):
            dtype = self.choose((self.dtype, self.dtype, *FLOATS, "int64", "bool"))
            self.fresh(self.some_shape(), dtype)

    # Choices.
    def choose(self, among: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(among))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def odds(self, no: int, yes: int) -> bool:
        return self.number(1, no + yes) > no

    def dim(self, shape: tuple[int, ...]) -> int:
        return self.number(-len(shape), len(shape) - 1)

    def some(self, rank: int) -> tuple[int, ...]:
        """Some of the dimensions."""
        return self.choose(list(combinations(range(rank), self.number(1, rank))))

    def order(self, rank: int) -> tuple[int, ...]:
        return tuple(self.draw(st.permutations(range(rank))))

    def some_shape(self, rank: int = 0) -> tuple[int, ...]:
        rank = max(rank, self.choose((0, 1, 2, 2, 2, 3, 3, 3, 4, 4)))
        if rank > 3:
            return tuple(self.choose(_SIZES_OF_FOUR) for _ in range(rank))
        sizes = (*_SIZES, 0) if self.odds(3, 1) else _SIZES
        return tuple(self.choose(sizes) for _ in range(rank))

    # Values.
    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.values[name].native.shape)

    def value(self, name: str) -> torch.Tensor:
        return self.values[name].native

    def fresh(self, shape: tuple[int, ...], dtype: str | None = None, **facts: Any) -> str:
        """A new input."""
        dtype = dtype or self.dtype
        if "layout" not in facts:
            fit = [one for one in LAYOUTS if LEAST_RANK[one] <= len(shape)
                   and (one != "channels_last" or len(shape) == 4)]  # fmt: skip
            facts["layout"] = self.choose(["plain"] * (4 * len(fit) // 3) + fit)
        if dtype == "int64" and "high" not in facts:
            facts.update(low=-4, high=5)
        if "learns" not in facts:
            facts["learns"] = self.learning and dtype in FLOATS and self.odds(3, 7)
        source = Source(f"a{len(self.sources)}", shape, dtype, **facts)
        self.values[source.name] = start(Program(self.seed, (source,), (), ()))[source.name]
        self.sources += (source,)
        return source.name

    def found(self, want: Callable[[torch.Tensor], bool], or_none: bool = False) -> str | None:
        """A value, rather a late one; none where there is none, and with or_none else in three of ten."""
        fit = [name for name, one in self.values.items() if want(one.native)]
        late = fit + fit[-3:] * (7 * len(fit) // 9 + 1)
        none = [None] * (len(late) * 3 // 7 + 1) if or_none else []
        return self.choose([*late, *none]) if fit else None

    def any(self, rank: int = 0) -> str:
        return self.found(lambda one: one.dim() >= rank) or self.floating(rank)

    def floating(self, rank: int = 0) -> str:
        ranks = range(rank, 9) if rank < 4 else (4,)
        found = self.found(lambda one: one.dim() in ranks and one.is_floating_point())
        return found or self.fresh(self.some_shape(rank))

    def exact(self) -> str:
        return self.found(lambda one: not one.is_floating_point()) or self.fresh(self.some_shape(), "int64")  # fmt: skip

    def target(self, rank: int = 0) -> str:
        """What may be written."""
        found = self.found(lambda one: one.dim() >= rank and not (one.is_leaf and one.requires_grad))  # fmt: skip
        if found is None:
            raise Unfit("nothing to write")
        return found

    def beside(self, shape: tuple[int, ...], dtype: str | None = None) -> str:
        """A value that broadcasts to a shape, or a new input of it or of a narrower one."""

        def fits(one: torch.Tensor) -> bool:
            same = dtype is None or _name(one.dtype) == dtype
            try:
                return same and torch.broadcast_shapes(one.shape, shape) == shape
            except RuntimeError:
                return False

        found = self.found(fits, or_none=True)
        if found is not None:
            return found
        narrow = tuple(1 if self.odds(2, 1) else n for n in shape)
        return self.fresh(narrow[self.choose((0, 0, 1)) :], dtype)

    # Operands and attributes of families of operators.
    def broadcast(self, kind: str) -> tuple[str, ...]:
        name = {"any": self.any, "float": self.floating}.get(kind, self.exact)()
        if kind == "whole" and self.value(name).dtype == torch.bool:
            name = self.fresh(self.shape(name), "int64")
        other = {"exact": "bool", "whole": "int64"}.get(kind)
        if other is None and self.odds(4, 1):
            other = self.choose((*FLOATS, "int64"))
        pair = (name, self.beside(self.shape(name), other))
        return pair[::-1] if kind != "whole" and self.odds(3, 2) else pair

    def alike(self, count: int = 2) -> tuple[str, ...]:
        """Floats of one dtype."""
        name = self.floating()
        dtype = _name(self.value(name).dtype)
        return (name, *(self.beside(self.shape(name), dtype) for _ in range(count - 1)))

    def chosen(self) -> Proposal:
        name = self.any()
        pair = (name, self.beside(self.shape(name)))
        pair = pair[::-1] if self.odds(1, 1) else pair
        return (self.beside(self.shape(name), "bool"), *pair), {}

    def masked(self) -> Proposal:
        name = self.any()
        return (self.beside(self.shape(name), "bool"), name), {"number": self.choose([0, 1, -1])}

    def truth(self) -> Proposal:
        name = self.found(lambda one: one.dtype == torch.bool and one.dim() > 0)
        name = name or self.fresh(self.some_shape(1), "bool")
        return (name,), {"dim": self.dim(self.shape(name))}

    def written(self) -> tuple[str, ...]:
        name = self.target()
        return name, self.beside(self.shape(name))

    def part(self) -> Proposal:
        name = self.target(1)
        shape = self.shape(name)
        at = self.choose([0, 1]) if shape[0] > 1 else 0
        return (name, self.beside((shape[0] - at, *shape[1:]))), {"at": at}

    def put(self) -> Proposal:
        """Twice at one place only where it adds."""
        name = self.target(1)
        shape = self.shape(name)
        count, adds = self.number(1, max(shape[0], 1)), self.odds(1, 1)
        places = self.places((count,), shape[0], distinct=not adds)
        return (name, places, self.like(name, (count, *shape[1:]))), {"sum": adds}

    def places(self, shape: tuple[int, ...], high: int, distinct: bool = False) -> str:
        if high < 1:
            raise Unfit("no place in an empty dimension")
        layout = {"layout": "plain"} if distinct else {}
        return self.fresh(shape, "int64", low=0, high=high, distinct=distinct, **layout)

    def joined(self) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        other = self.found(lambda one: one.shape == shape, or_none=True)
        if other in (None, name):
            other = self.fresh(shape, self.choose(FLOATS))
        return (name, other), {"dim": self.number(0, len(shape) - 1)}

    # Of networks.
    def like(self, name: str, shape: tuple[int, ...]) -> str:
        """A new input of a value's dtype."""
        return self.fresh(shape, _name(self.value(name).dtype))

    def layer_norm(self) -> Proposal:
        name = self.floating(1)
        shape = self.shape(name)[-self.choose([1, 1, 2]) :]
        return (name, self.like(name, shape), self.like(name, shape)), {}

    def batch_norm(self) -> Proposal:
        name = self.floating(2)
        count = (self.shape(name)[1],)
        statistics = {"layout": "plain", "low": 0.5, "high": 1.5, "learns": False}
        more = [self.fresh(count, "float32", **facts) for facts in (statistics, statistics, {}, {})]
        return (name, *more), {"training": self.odds(1, 1)}

    def linear(self) -> Proposal:
        name, to = self.floating(1), self.choose([1, 3, 4, 8])
        return (name, self.like(name, (to, self.shape(name)[-1])), self.like(name, (to,))), {}

    def matmul(self) -> Proposal:
        name, to = self.floating(1), self.choose([1, 3, 4, 8])
        shape = self.shape(name)
        batch = shape[:-2] if self.odds(1, 1) else ()
        return (name, self.like(name, (*batch, shape[-1], to))), {}

    def batched(self) -> tuple[str, ...]:
        name = self.found(lambda one: one.dim() == 3 and one.is_floating_point())
        name = name or self.fresh((self.choose([1, 2, 3]), self.choose([1, 4, 5]), self.choose([2, 8])))  # fmt: skip
        b, m, k = self.shape(name)
        n = self.choose([1, 3, 8])
        added = (self.choose([1, b]), self.choose([1, m]), n)
        return name, self.like(name, (b, k, n)), self.like(name, added)

    def image(self) -> str:
        found = self.found(lambda one: one.dim() == 4 and one.is_floating_point())
        return found or self.fresh((self.choose([1, 2]), self.choose([1, 2, 4]), self.choose([3, 5, 8]), self.choose([2, 4, 5])))  # fmt: skip

    def convolution(self) -> Proposal:
        name = self.image()
        inputs = self.shape(name)[1]
        groups = self.choose([one for one in (1, 2, inputs) if one and inputs % one == 0] or [1])
        outputs, kernel = groups * self.choose([1, 2]), self.choose([1, 2, 3])
        weight = self.like(name, (outputs, inputs // groups, kernel, kernel))
        return (name, weight, self.like(name, (outputs,))), {
            "stride": self.choose([1, 2]), "padding": self.choose([0, 1]), "groups": groups}  # fmt: skip

    def embedding(self) -> Proposal:
        rows = self.choose([2, 5])
        weight = self.fresh((rows, self.choose([1, 3, 4])))
        return (weight, self.places(self.some_shape(1), rows)), {}

    def gathered(self) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        return (name, self.places((self.choose([1, 3]), *shape[1:]), shape[0])), {}

    def scattered(self) -> Proposal:
        (name, places), _ = self.gathered()
        return (name, places, self.like(name, self.shape(places))), {}

    def selected(self, dim: int | None = None) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        dim = self.number(0, len(shape) - 1) if dim is None else dim
        return (name, self.places((self.choose([1, 2, 4]),), shape[dim])), {"dim": dim}

    def attention(self) -> Proposal:
        name = self.image()
        shape = self.shape(name)
        length = shape[2] if self.odds(1, 1) else self.choose([1, 3, 6])
        other = (*shape[:2], length, shape[3])
        causal = length == shape[2] and self.odds(1, 1)
        return (name, self.like(name, other), self.like(name, other)), {"causal": causal}

    def classified(self) -> Proposal:
        name = self.found(lambda one: one.dim() == 2 and one.is_floating_point())
        name = name or self.fresh((self.choose([1, 3, 4]), self.choose([2, 5])))
        rows, classes = self.shape(name)
        return (name, self.places((rows,), classes)), {}
