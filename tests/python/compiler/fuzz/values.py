# tests/python/compiler/fuzz/values.py: the values of a program, computed on the CPU beside float64.
"""The rule that leaves no false alarms. Each value is computed twice on the CPU: as the program says, and
in float64. Where both agree by construction (inputs, whole numbers, booleans, and what operators marked
`exact` make of these) the value is *exact* and any device gives the same bits. Elsewhere a value is known
up to its *noise*: the larger of the distance of the two and its dtype's rounding, times its size. An
operator whose result jumps (comparisons, rounding, argmax, sort, casts to whole numbers) takes exact
operands, or ones that all lie MARGIN noises from the jump; one whose gradient jumps (relu, abs, amax)
too, in programs that learn. So whatever differs by more than rounding is a defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from operators import OPERATORS, Operator
from program import Node, Program, doubled

MARGIN = 8
_LARGEST, _LARGEST_WHOLE, _MOST_ELEMENTS = 32.0, 1e6, 600
_POINTS = (-3.0, -1.0, 0.0, 0.25, 1.0, 3.0)


class Unfit(Exception):
    """The program does not keep to the rules."""


@dataclass
class Value:
    """native, wide: the same numbers, as the program says and in float64. eps: of the coarsest dtype
    behind them, 0 where exact."""

    native: torch.Tensor
    wide: torch.Tensor
    eps: float = 0.0

    @property
    def exact(self) -> bool:
        return self.eps == 0

    def error(self) -> float:
        return _largest(self.native.detach().double() - self.wide.detach().double())

    def noise(self) -> float:
        return max(self.error(), self.eps * max(1.0, _largest(self.wide)))


def _largest(tensor: torch.Tensor) -> float:
    return tensor.detach().double().abs().max().item() if tensor.numel() else 0.0


def _gap(numbers: torch.Tensor) -> float:
    ordered = numbers.detach().double().flatten().sort().values
    return (ordered[1:] - ordered[:-1]).min().item() if len(ordered) > 1 else 1.0


def _distance(rule: str, operands: list[Value]) -> float:
    """How near the operands come to a place where the operator jumps."""
    wide = [one.wide.detach().double() for one in operands]
    if not wide[0].numel():
        return 1.0
    if rule == "zero":
        return wide[0].abs().min().item()
    if rule == "points":
        return min((wide[0] - point).abs().min().item() for point in _POINTS)
    if rule == "halves":
        return (2 * wide[0] - (2 * wide[0]).round()).abs().min().item() / 2
    if rule == "pair":
        apart = (wide[0] - wide[1]).abs()
        return apart.min().item() if apart.numel() else 1.0
    return _gap(wide[0])


def _obey(operator: Operator, operands: list[Value], learns: bool) -> None:
    if not operator.rule or not (operator.jumps or learns):
        return
    noise = max(one.noise() if not one.exact else 0.0 for one in operands)
    if operator.rule == "distinct":
        noise = max(noise, 1e-6)
    if noise and _distance(operator.rule, operands) <= MARGIN * noise:
        raise Unfit(f"{operator.form}: an operand lies where the operator jumps")


class wide_default:
    """Python's numbers and integers become float64 beside nothing else."""

    def __enter__(self) -> None:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self.before)


Values = dict[str, Value]


def start(program: Program) -> Values:
    """The inputs."""
    native = program.build()[0]("cpu")
    wide = program.reference()[0]("cpu")
    return {one.name: Value(a, b) for one, a, b in zip(program.sources, native, wide, strict=True)}


def _evaluated(code: str, values: Values, side: Callable[[Value], torch.Tensor]) -> torch.Tensor:
    names: dict[str, Any] = {name: side(one) for name, one in values.items()}
    result = eval(code, {"torch": torch, "F": F, **names})
    if not isinstance(result, torch.Tensor):
        raise Unfit("no tensor")
    return result


def _tame(result: torch.Tensor) -> bool:
    limit = _LARGEST if result.is_floating_point() else _LARGEST_WHOLE
    return result.numel() <= _MOST_ELEMENTS and _largest(result) <= limit  # NaN is not


def _overlaps(one: torch.Tensor) -> bool:
    return any(n > 1 and by == 0 for n, by in zip(one.shape, one.stride(), strict=True))


def step(values: Values, node: Node, learns: bool) -> None:
    """Computes a node and adds its value; raises Unfit, or what PyTorch raises, where it may not stand."""
    operator = OPERATORS[node.op]
    operands = [values[name] for name in node.operands]
    _obey(operator, operands, learns)
    floats = [one.native.is_floating_point() for one in operands]
    if operator.writes and not floats[0] and any(floats):
        raise Unfit("a float written into whole numbers")
    if operator.writes and _overlaps(operands[0].native):
        raise Unfit("PyTorch refuses, or deprecates, a write to memory that overlaps itself")
    code = node.expression()
    native = _evaluated(code, values, lambda one: one.native)
    with wide_default():
        wide = _evaluated(doubled(code), values, lambda one: one.wide)
    if native.shape != wide.shape or not _tame(native):
        raise Unfit("not tame")
    made = Value(native, wide)
    whole = not native.is_floating_point()
    kept = operator.exact and all(one.exact for one in operands)
    if whole and made.error():
        raise Unfit("whole numbers that depend on rounding")
    if not whole and not (kept and not made.error()):
        made.eps = max(torch.finfo(native.dtype).eps, *(one.eps for one in operands))
    if operator.writes:
        _spread(values, operands[:5], made)
    values[node.name] = made


def _spread(values: Values, written: list[Value], made: Value) -> None:
    """Who shares memory with what was written has its noise."""
    memory = {one.native.untyped_storage().data_ptr() for one in [*written[:1], *written[3:], made]}
    for one in values.values():
        shares = one.native.untyped_storage().data_ptr() in memory and one.native.numel() > 0
        if shares and one.native.is_floating_point():
            if not _tame(one.native):
                raise Unfit("not tame")
            one.eps = max(one.eps, made.eps)


def loss(results: Any) -> torch.Tensor | None:
    """Weights each number by another one, so that nothing cancels."""
    total = None
    for one in results:
        if isinstance(one, torch.Tensor) and one.requires_grad:
            wide = torch.float64 if one.dtype == torch.float64 else torch.float32
            weights = torch.arange(one.numel(), device=one.device).to(wide).cos()
            part = (one.to(wide) * weights.view(one.shape)).sum()
            total = part if total is None else total + part
    return total


@dataclass
class Expected:
    """What a program gives: values by name, gradients of its inputs in float64, their noise."""

    values: Values
    slopes: list[torch.Tensor | None]
    slope_noise: float


def check(program: Program) -> Expected:
    """Computes a program on the CPU; raises where it does not keep to the rules."""
    values = start(program)
    sources = [values[one.name] for one in program.sources]
    for node in program.nodes:
        step(values, node, program.learns())
    outputs = [values[name] for name in program.outputs]
    sides = []
    for side in ("native", "wide"):
        total = loss([getattr(one, side) for one in outputs])
        if total is not None:
            total.backward()
        sides.append([getattr(one, side).grad for one in sources])
    native, wide = sides
    if not all(one is None or _tame(one) for one in native):
        raise Unfit("not tame")
    pairs = [(a, b) for a, b in zip(native, wide, strict=True) if a is not None and b is not None]
    size = max(
        [1.0, *(_largest(b) for _, b in pairs), *(_largest(v.wide) for v in values.values())]
    )
    eps = max([torch.finfo(torch.float32).eps, *(one.eps for one in values.values())])
    eps = max([eps, *(torch.finfo(a.dtype).eps for a, _ in pairs)])
    error = max([0.0, *(_largest(a.double() - b) for a, b in pairs)])
    return Expected(values, wide, max(error, eps * size))
