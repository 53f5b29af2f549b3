# tests/python/compiler/fuzz/trial.py: one program, eager and compiled on the device, beside float64.
"""What is compared: results (dtype, shape, strides, whether they learn), inputs afterwards, which of
them share memory, gradients. Strides and shared memory may also be those of PyTorch's own tracing. Exact
values are equal bit for bit; others are as near to float64 as eager is: within FACTOR times the larger of eager's error and of the value's noise (values)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import torch_graft
from program import Program, Tensors
from torch_graft import compiler
from torch_graft.compiler.tracing import backend
from values import Expected, check, loss

FACTOR = 4
Call = Callable[..., Any]


class Mismatch(AssertionError):
    """Compiled and eager differ, in `kind`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Way:
    """optimized: torch_graft.optimize, else torch.compile. training: gradients are asked for."""

    optimized: bool
    training: bool
    dynamic: bool | None = False

    def __str__(self) -> str:
        name = "optimize" if self.optimized else "torch.compile"
        return f"{name}, {'training' if self.training else 'inference'}, dynamic={self.dynamic}"


class Model(torch.nn.Module):
    """The program as a module: what learns are its parameters, its arguments the rest."""

    def __init__(self, program: Program, function: Call, given: Tensors) -> None:
        super().__init__()
        self.function = function
        self.learned = [one.learns for one in program.sources]
        self.weights = torch.nn.ParameterList(
            one for one, learns in zip(given, self.learned, strict=True) if learns
        )

    def forward(self, *given: torch.Tensor) -> Any:
        weights, rest = iter(self.weights), iter(given)
        return self.function(*[next(weights if learns else rest) for learns in self.learned])


@dataclass
class Shown:
    """What one call shows."""

    results: Tensors
    inputs: Tensors
    slopes: list[torch.Tensor | None]

    def memory(self) -> list[int]:
        """For each tensor with elements the first one that shares its memory."""
        known: dict[int, int] = {}
        every = [one for one in [*self.inputs, *self.results] if one.numel()]
        return [
            known.setdefault(one.untyped_storage().data_ptr(), at) for at, one in enumerate(every)
        ]


def observe(call: Call, given: Tensors, training: bool) -> Shown:
    with warnings.catch_warnings(), torch.set_grad_enabled(training):
        warnings.simplefilter("ignore")
        results = list(call(*given))
        total = loss(results) if training else None
        if total is not None:
            total.backward()
    return Shown(results, given, [one.grad for one in given])


def _traced(called: Any, way: Way) -> Call:
    front = backend(lambda traced: traced.module)
    return torch.compile(called, backend=front, fullgraph=True, dynamic=way.dynamic)


def shown(program: Program, way: Way, device: str, how: str) -> Shown:
    """What the program shows on fresh inputs: compiled that way, eager in the same form, traced (the
    compiler's own graph, its nodes run by eager), or as PyTorch alone traces and runs it (plain)."""
    make, function = program.build()
    given = make(device)
    if how == "plain":
        plain = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=way.dynamic)
        return observe(plain, given, way.training)
    if not way.optimized:
        call = function if how == "eager" else _traced(function, way)
        if how == "compiled":
            call = torch.compile(function, fullgraph=True, dynamic=way.dynamic)
        return observe(call, given, way.training)
    mode = "training" if way.training else "inference"
    model = Model(program, function, given).eval()
    called: Call = model if how == "eager" else _traced(model, way)
    if how == "compiled":
        called = torch_graft.optimize(model, mode=mode, dynamic=way.dynamic)
    rest = [one for one, learns in zip(given, model.learned, strict=True) if not learns]
    weights = iter(model.weights)
    seen = observe(lambda *_: called(*rest), given, way.training)
    seen.slopes = [next(weights).grad if learns else None for learns in model.learned]
    return seen


def _errors(got: torch.Tensor, eager: torch.Tensor, wide: torch.Tensor) -> tuple[float, float]:
    if not wide.numel():
        return 0.0, 0.0
    return tuple(
        (one.detach().cpu().double() - wide.detach().double()).abs().max().item()
        for one in (got, eager)
    )  # type: ignore[return-value]


def _compare(
    what: str, got: torch.Tensor, eager: torch.Tensor, wide: torch.Tensor, noise: float
) -> None:
    if (got.dtype, got.shape) != (eager.dtype, eager.shape):
        raise Mismatch(
            "types",
            f"{what} is {got.dtype} {tuple(got.shape)}, eager's {eager.dtype} {tuple(eager.shape)}",
        )
    mine, theirs = _errors(got, eager, wide)
    limit = FACTOR * max(noise, theirs)
    if not mine <= limit:
        raise Mismatch("numbers", f"{what} is {mine:.3g} from float64, eager {theirs:.3g}, allowed {limit:.3g}:\n"
                       f"compiled {got.detach().cpu()}\neager {eager.detach().cpu()}")  # fmt: skip


def _strides(one: torch.Tensor) -> list[int]:
    """Those that say something."""
    if not one.numel():
        return []
    return [step for size, step in zip(one.shape, one.stride(), strict=True) if size > 1]


def _faked_otherwise(program: Program, expected: Expected) -> bool:
    """PyTorch's fake tensors, which a graph is traced with, lay results of these operators out as eager
    does not: convolutions on a device it does not know are contiguous, where eager keeps
    channels_last; batch norm keeps its operand's strides, where eager is contiguous."""
    seen = [expected.values[name].native for node in program.nodes
            if node.op in ("conv2d", "batch_norm") for name in node.operands]  # fmt: skip
    return not all(one.is_contiguous() for one in seen)


def _raises_plain(program: Program, way: Way) -> bool:
    """AOTAutograd itself mixes inputs up that a graph writes, some of them outside of autograd: the
    program fails then on the CPU, and without Graft's tracing."""
    torch._dynamo.reset()
    try:
        shown(program, way, "cpu", "plain")
    except Exception:
        return True
    return False


def compare_layouts(program: Program, got: Shown, eager: Shown) -> None:
    names = [*program.outputs, *(one.name for one in program.sources)]
    mine, theirs = [*got.results, *got.inputs], [*eager.results, *eager.inputs]
    for name, one, other in zip(names, mine, theirs, strict=True):
        if _strides(one) != _strides(other):
            raise Mismatch(
                "layouts",
                f"{name} has strides {one.stride()}, eager's {other.stride()} for {tuple(one.shape)}",
            )
    if got.memory() != eager.memory():
        raise Mismatch(
            "layouts", f"memory is shared as {got.memory()}, eager's as {eager.memory()}"
        )


def compare(program: Program, got: Shown, eager: Shown, expected: Expected) -> None:
    names = [*program.outputs, *(one.name for one in program.sources)]
    mine, theirs = [*got.results, *got.inputs], [*eager.results, *eager.inputs]
    if len(got.results) != len(eager.results):
        raise Mismatch("results", f"{len(got.results)} results, eager has {len(eager.results)}")
    for name, one, other in zip(names, mine, theirs, strict=True):
        value = expected.values[name]
        _compare(name, one, other, value.wide, 0.0 if value.exact else value.noise())
        if one.requires_grad != other.requires_grad:
            raise Mismatch(
                "learning",
                f"{name}.requires_grad is {one.requires_grad}, eager's {other.requires_grad}",
            )
    slopes = zip(program.sources, got.slopes, eager.slopes, expected.slopes, strict=True)
    for source, one, other, wide in slopes:
        if (one is None) != (other is None):
            # AOTAutograd gives zeros to inputs of a graph that nothing leads to.
            found = one if one is not None else other
            if found is None or found.count_nonzero():
                raise Mismatch("slopes", f"{source.name}.grad is {one}, eager's {other}")
        if one is not None and other is not None and wide is not None:
            _compare(f"{source.name}.grad", one, other, wide, expected.slope_noise)


def trial(program: Program, way: Way, device: str) -> None:
    """Raises Mismatch where compiled and eager differ."""
    expected = check(program)
    try:
        eager = shown(program, way, device, "eager")
    except RuntimeError as error:
        # The device's attention keeps its operands for the backward, the CPU's not all of them.
        if "modified by an inplace operation" in str(error):
            return
        raise
    torch._dynamo.reset()
    compiler.reset_reports()
    try:
        got = shown(program, way, device, "compiled")
    except Exception as error:
        if _raises_plain(program, way):
            return
        text = str(error).strip().split("\n")
        raise Mismatch("raised", f"{type(error).__name__}: {' '.join(text[:6])}") from error
    compare(program, got, eager, expected)
    try:
        compare_layouts(program, got, eager)
    except Mismatch:
        # Decompositions do not always keep eager's strides, for any backend.
        torch._dynamo.reset()
        if not _faked_otherwise(program, expected):
            compare_layouts(program, got, shown(program, way, device, "traced"))
    for report in compiler.reports():
        if not report.compiled:
            raise Mismatch("refused", f"not compiled: {report.why}")
