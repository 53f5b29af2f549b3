# tests/python/compiler/fuzz/draft.py: random programs, node by node.
"""Each node is computed as soon as it is drawn (values), so that the next one knows its
operands' shapes, dtypes and noise; what PyTorch refuses or the rules forbid is drawn again."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from operators import FLOATS, OPERATORS, Proposal
from program import LAYOUTS, LEAST_RANK, Node, Program, Source
from values import Unfit, Value, check, start, step

_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class Draft:
    """A program that grows. The methods after `grow` are what operators ask for."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.learning = self.rng.random() < 0.6
        self.dtype = self.rng.choice(("float32", "float32", *FLOATS))
        self.program = Program(seed, (), (), ())
        self.values: dict[str, Value] = {}
        for _ in range(self.rng.randint(1, 3)):
            self.fresh(self.some_shape(), self.rng.choice((self.dtype, self.dtype, *FLOATS, "int64", "bool")))  # fmt: skip

    def grow(self) -> None:
        """One node more; Unfit where none was found."""
        for _ in range(40):
            kept, held = self.program, dict(self.values)
            try:
                self._propose()
                return
            except (Unfit, RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
                self.program, self.values = kept, held
                self._rewind()
        raise Unfit("no operator fits")

    def _propose(self) -> None:
        op = self.rng.choice(list(OPERATORS))
        operands, attributes = OPERATORS[op].propose(self)
        node = Node(f"v{self.program.size()}", op, operands, attributes)
        step(self.values, node, self.learning)
        one = self.program
        self.program = Program(one.seed, one.sources, (*one.nodes, node), ())

    def _rewind(self) -> None:
        """A refused write may have written."""
        self.values = start(self.program)
        for node in self.program.nodes:
            step(self.values, node, self.learning)

    def finished(self) -> Program:
        one = self.program
        used = {name for node in one.nodes for name in node.operands}
        outputs = [node.name for node in one.nodes
                   if node.name not in used or self.rng.random() < 0.15]  # fmt: skip
        if self.rng.random() < 0.15:
            outputs.append(one.sources[0].name)
        return Program(one.seed, one.sources, one.nodes, tuple(outputs))

    # Choices.
    def choose(self, among: Sequence[Any]) -> Any:
        return self.rng.choice(among)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.values[name].native.shape)

    def dim(self, shape: tuple[int, ...]) -> int:
        return self.rng.randrange(-len(shape), len(shape))

    def some_shape(self, rank: int = 0) -> tuple[int, ...]:
        rank = max(rank, self.rng.choice((0, 1, 2, 2, 3, 3, 4)))
        sizes = _SIZES if self.rng.random() < 0.15 else _SIZES[1:]
        return tuple(self.rng.choice(sizes if rank < 4 else sizes[1:-2]) for _ in range(rank))

    # Operands.
    def fresh(self, shape: tuple[int, ...], dtype: str | None = None, **facts: Any) -> str:
        """A new input."""
        dtype = dtype or self.dtype
        layouts = [one for one in LAYOUTS if LEAST_RANK[one] <= len(shape)
                   and (one != "channels_last" or len(shape) == 4)]  # fmt: skip
        if "layout" not in facts:
            facts["layout"] = self.rng.choice(layouts) if self.rng.random() < 0.4 else "plain"
        if dtype == "int64" and "high" not in facts:
            facts.update(low=-4, high=5)
        learns = self.learning and dtype in FLOATS and self.rng.random() < 0.7
        name = f"a{len(self.program.sources)}"
        source = Source(name, shape, dtype, learns=learns, **facts)
        one = self.program
        self.values[name] = start(Program(one.seed, (source,), (), ()))[name]
        self.program = Program(one.seed, (*one.sources, source), one.nodes, ())
        return name

    def find(self, want: Callable[[torch.Tensor], bool]) -> str | None:
        """A value, rather a late one."""
        fit = [name for name, one in self.values.items() if want(one.native)]
        if not fit:
            return None
        return self.rng.choice(fit[-3:] if self.rng.random() < 0.7 else fit)

    def any(self, rank: int = 0) -> str:
        return self.find(lambda one: one.dim() >= rank) or self.floating(rank)

    def floating(self, rank: int = 0) -> str:
        found = self.find(
            lambda one: (
                one.dim() >= rank and one.is_floating_point() and (rank < 4 or one.dim() == 4)
            )
        )
        return found or self.fresh(self.some_shape(rank))

    def exact(self) -> str:
        return self.find(lambda one: not one.is_floating_point()) or self.fresh(self.some_shape(), "int64")  # fmt: skip

    def target(self, rank: int = 0) -> str:
        """What may be written."""
        found = self.find(lambda one: one.dim() >= rank and not (one.is_leaf and one.requires_grad))
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

        found = self.find(fits) if self.rng.random() < 0.7 else None
        if found is not None:
            return found
        narrow = tuple(1 if self.rng.random() < 0.25 else n for n in shape)
        return self.fresh(narrow[self.rng.choice((0, 0, 1)) :], dtype)

    def broadcast(self, kind: str) -> tuple[str, ...]:
        first = {"any": self.any, "float": self.floating}.get(kind)
        name = first() if first else self.exact()
        if kind == "whole" and self.values[name].native.dtype == torch.bool:
            name = self.fresh(self.shape(name), "int64")
        other = {"exact": "bool", "whole": "int64"}.get(kind)
        if other is None and self.rng.random() < 0.2:
            other = self.rng.choice((*FLOATS, "int64"))
        pair = [name, self.beside(self.shape(name), other)]
        return tuple(pair if self.rng.random() < 0.6 or kind == "whole" else pair[::-1])

    def alike(self, count: int = 2) -> tuple[str, ...]:
        """Floats of one dtype."""
        name = self.floating()
        dtype = _name(self.values[name].native.dtype)
        return (name, *(self.beside(self.shape(name), dtype) for _ in range(count - 1)))

    def chosen(self) -> Proposal:
        name = self.any()
        other = self.beside(self.shape(name))
        return (self.beside(self.shape(name), "bool"), *self.rng.sample([name, other], 2)), {}

    def masked(self) -> Proposal:
        name = self.any()
        return (self.beside(self.shape(name), "bool"), name), {"number": self.choose([0, 1, -1])}

    def truth(self) -> Proposal:
        name = self.find(lambda one: one.dtype == torch.bool and one.dim() > 0)
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
        shape, one = self.shape(name), self.values[name].native
        count, adds = self.rng.randint(1, max(shape[0], 1)), self.rng.random() < 0.5
        places = self.places((count,), shape[0], not adds)
        return (name, places, self.fresh((count, *shape[1:]), _name(one.dtype))), {"sum": adds}

    def places(self, shape: tuple[int, ...], high: int, distinct: bool = False) -> str:
        if high < 1:
            raise Unfit("no place in an empty dimension")
        layout = {"layout": "plain"} if distinct else {}
        return self.fresh(shape, "int64", low=0, high=high, distinct=distinct, **layout)

    def joined(self) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        other = self.find(lambda one: one.shape == shape) or name
        if other == name or self.rng.random() < 0.3:
            other = self.fresh(shape, self.choose(FLOATS))
        return (name, other), {"dim": self.rng.randrange(len(shape))}

    # Operands of networks.
    def _like(self, name: str, shape: tuple[int, ...]) -> str:
        return self.fresh(shape, _name(self.values[name].native.dtype))

    def layer_norm(self) -> Proposal:
        name = self.floating(1)
        shape = self.shape(name)[-self.choose([1, 1, 2]) :]
        return (name, self._like(name, shape), self._like(name, shape)), {}

    def batch_norm(self) -> Proposal:
        name = self.floating(2)
        count = self.shape(name)[1]
        training = self.rng.random() < 0.5
        kept, self.learning = self.learning, False
        statistics = [
            self.fresh((count,), "float32", layout="plain", low=0.5, high=1.5) for _ in range(2)
        ]
        self.learning = kept
        more = [self.fresh((count,), "float32") for _ in range(2)]
        return (name, *statistics, *more), {"training": training}

    def linear(self) -> Proposal:
        name, to = self.floating(1), self.choose([1, 3, 4, 8])
        return (name, self._like(name, (to, self.shape(name)[-1])), self._like(name, (to,))), {}

    def matmul(self) -> Proposal:
        name, to = self.floating(1), self.choose([1, 3, 4, 8])
        shape = self.shape(name)
        batch = shape[:-2] if self.rng.random() < 0.5 else ()
        return (name, self._like(name, (*batch, shape[-1], to))), {}

    def batched(self) -> tuple[str, ...]:
        name = self.find(lambda one: one.dim() == 3 and one.is_floating_point())
        name = name or self.fresh(
            (self.choose([1, 2, 3]), self.choose([1, 4, 5]), self.choose([2, 8]))
        )
        b, m, k = self.shape(name)
        n = self.choose([1, 3, 8])
        return (
            name,
            self._like(name, (b, k, n)),
            self._like(name, (self.choose([1, b]), self.choose([1, m]), n)),
        )

    def image(self) -> str:
        found = self.find(lambda one: one.dim() == 4 and one.is_floating_point())
        return found or self.fresh((self.choose([1, 2]), self.choose([1, 2, 4]), self.choose([3, 5, 8]), self.choose([2, 4, 5])))  # fmt: skip

    def convolution(self) -> Proposal:
        name = self.image()
        inputs = self.shape(name)[1]
        groups = self.choose([one for one in (1, 2, inputs) if one and inputs % one == 0] or [1])
        outputs, kernel = groups * self.choose([1, 2]), self.choose([1, 2, 3])
        weight = self._like(name, (outputs, inputs // groups, kernel, kernel))
        return (name, weight, self._like(name, (outputs,))), {
            "stride": self.choose([1, 2]), "padding": self.choose([0, 1]), "groups": groups}  # fmt: skip

    def embedding(self) -> Proposal:
        rows = self.choose([2, 5])
        return (
            self.fresh((rows, self.choose([1, 3, 4]))),
            self.places(self.some_shape(1), rows),
        ), {}

    def gathered(self) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        return (name, self.places((self.choose([1, 3]), *shape[1:]), shape[0])), {}

    def scattered(self) -> Proposal:
        (name, places), _ = self.gathered()
        return (name, places, self._like(name, self.shape(places))), {}

    def selected(self, dim: int | None = None) -> Proposal:
        name = self.any(1)
        shape = self.shape(name)
        dim = self.rng.randrange(len(shape)) if dim is None else dim
        return (name, self.places((self.choose([1, 2, 4]),), shape[dim])), {"dim": dim}

    def attention(self) -> Proposal:
        name = self.image()
        shape = self.shape(name)
        length = shape[2] if self.rng.random() < 0.5 else self.choose([1, 3, 6])
        other = (*shape[:2], length, shape[3])
        return (name, self._like(name, other), self._like(name, other)), {"causal": length == shape[2] and self.rng.random() < 0.5}  # fmt: skip

    def classified(self) -> Proposal:
        name = self.find(lambda one: one.dim() == 2 and one.is_floating_point())
        name = name or self.fresh((self.choose([1, 3, 4]), self.choose([2, 5])))
        rows, classes = self.shape(name)
        return (name, self.places((rows,), classes)), {}


def generate(seed: int) -> Program:
    """The program of a seed: 3 to 12 nodes. The same for the same seed and the same table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in range(50):
            draft = Draft(seed * 50 + attempt)
            try:
                for _ in range(draft.rng.randint(3, 12)):
                    draft.grow()
                program = draft.finished()
                check(program)
            except (Unfit, RuntimeError):
                continue
            return program
    raise RuntimeError(f"seed {seed} gives no program in 50 attempts")
