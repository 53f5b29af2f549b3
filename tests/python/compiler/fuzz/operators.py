# tests/python/compiler/fuzz/operators.py: the operators of random programs, and where each may stand.
"""A form is torch code. `rule` names the points that its operands keep away from (values says
how far): `jumps` where the result itself jumps there, and otherwise only its gradient does.
`exact`: exact operands give exact results. Numbers stay tame by form: logarithms, roots and quotients
are of 0.5 + x * x.

Left out, because PyTorch's own ways differ or nothing is promised: random numbers (docs/use/compile.md),
topk and max with equal elements (which one is meant is not said), results whose sizes depend on data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operands import Scope

Proposal = tuple[tuple[str, ...], dict[str, Any]]
FLOATS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Operator:
    form: str
    propose: Callable[[Scope], Proposal]
    exact: bool = False
    rule: str = ""
    jumps: bool = False
    writes: bool = False


OPERATORS: dict[str, Operator] = {}


def _one(floating: bool = True, rank: int = 0, **choices: Any) -> Callable[[Scope], Proposal]:
    """One operand; a choice is a list, or asks the scope and the operand's shape."""

    def propose(scope: Scope) -> Proposal:
        name = scope.floating(rank) if floating else scope.any(rank)
        shape = scope.shape(name)
        return (name,), {
            key: of(scope, shape) if callable(of) else scope.choose(of)
            for key, of in choices.items()
        }

    return propose


def _dim(scope: Scope, shape: tuple[int, ...]) -> int:
    return scope.dim(shape)


def _dims(scope: Scope, shape: tuple[int, ...]) -> tuple[int, ...]:
    return scope.some(len(shape))


def _order(scope: Scope, shape: tuple[int, ...]) -> tuple[int, ...]:
    return scope.order(len(shape))


def _pair(kind: str) -> Callable[[Scope], Proposal]:
    return lambda scope: (scope.broadcast(kind), {})


def _add(form: str, propose: Callable[[Scope], Proposal], *names: str, **facts: Any) -> None:
    """One operator per name, which stands for NAME in the form."""
    for name in names:
        OPERATORS[name] = Operator(form.replace("NAME", name), propose, **facts)


# A row a line.
# fmt: off
def _pointwise() -> None:
    _add("torch.NAME({0})", _one(), "tanh", "sigmoid", "exp", "sin", "cos", "erf", "expm1", "square", "atan", "asinh")
    _add("F.NAME({0})", _one(), "silu", "softplus", "mish", "logsigmoid")
    _add("F.gelu({0}, approximate='{how}')", _one(how=["none", "tanh"]), "gelu")
    _add("torch.NAME({0} * {0} + 0.5)", _one(), "log", "sqrt", "rsqrt", "reciprocal", "log1p", "log2")
    _add("torch.pow({0}, {exponent})", _one(exponent=[2, 3, 1]), "pow")
    _add("F.NAME({0})", _one(), "relu", "leaky_relu", rule="zero", exact=False)
    _add("torch.NAME({0})", _one(), "abs", rule="zero", exact=True)
    _add("torch.NAME({0})", _one(), "sign", rule="zero", exact=True, jumps=True)
    _add("torch.neg({0})", _one(), "neg", exact=True)
    _add("F.NAME({0})", _one(), "elu", "hardtanh", "hardswish", "hardsigmoid", rule="points")
    _add("torch.clamp({0}, {low}, {high})", _one(low=[-1.0, "None"], high=[1.0]), "clamp", rule="points", exact=True)
    _add("torch.NAME({0})", _one(), "round", "floor", "ceil", "trunc", rule="halves", jumps=True, exact=True)


def _arithmetic() -> None:
    _add("{0} + {number}", _one(False, number=[2, -1, 0.5, 1.25]), "add_number")
    _add("{0} * {number}", _one(False, number=[2, -1, 0.5, 1.25]), "mul_number")
    _add("{number} - {0}", _one(number=[2, -1, 0.5, 1.25]), "rsub_number")
    _add("{0} / {number}", _one(False, number=[2, -1, 0.5, 1.25]), "div_number")
    _add("torch.add({0}, {1}, alpha={alpha})", lambda scope: (scope.broadcast("any"), {"alpha": scope.choose([1, 2, -1])}), "add")
    _add("{0} - {1}", _pair("float"), "sub")
    _add("{0} * {1}", _pair("any"), "mul")
    _add("{0} / ({1} * {1} + 1)", _pair("any"), "div")
    _add("torch.atan2({0}, {1} * {1} + 0.5)", _pair("float"), "atan2")
    _add("torch.lerp({0}, {1}, 0.25)", lambda scope: (scope.alike(), {}), "lerp")
    _add("torch.NAME({0}, {1})", _pair("any"), "maximum", "minimum", rule="pair", exact=True)
    for name, sign in {"gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
        _add("{0} " + sign + " {1}", _pair("any"), name, rule="pair", jumps=True, exact=True)
    _add("{0} < {number}", _one(False, number=[0, 1, 0.25]), "lt_number", rule="points", jumps=True, exact=True)
    _add("torch.NAME({0}, {1})", _pair("exact"), "logical_and", "logical_or", exact=True)
    _add("torch.logical_not({0})", lambda scope: ((scope.exact(),), {}), "logical_not", exact=True)
    _add("torch.NAME({0}, {1} * {1} + 1)", _pair("whole"), "remainder", "fmod", "floor_divide", exact=True)
    _add("torch.bitwise_NAME({0}, {1})", _pair("whole"), "and", "or", "xor", exact=True)
    _add("torch.where({0}, {1}, {2})", lambda scope: scope.chosen(), "where", exact=True)
    _add("{1}.masked_fill({0}, {number})", lambda scope: scope.masked(), "masked_fill", exact=True)
    _add("torch.addcmul({0}, {1}, {2}, value=0.5)", lambda scope: (scope.alike(3), {}), "addcmul")
    _add("torch.addcdiv({0}, {1}, {2} * {2} + 1, value=0.5)", lambda scope: (scope.alike(3), {}), "addcdiv")


def _casts() -> None:
    _add("{0}.to(torch.{dtype})", _one(False, dtype=FLOATS), "to", exact=True)
    _add("{0}.to(torch.int64)", _one(), "to_whole", rule="halves", jumps=True, exact=True)
    _add("{0}.to(torch.bool)", _one(), "to_bool", rule="zero", jumps=True, exact=True)
    _add("torch.cumsum({0}, {dim})", _one(False, 1, dim=_dim), "cumsum")


def _inplace() -> None:
    _add("{0}.NAME({1})", lambda scope: (scope.written(), {}), "add_", "mul_", "sub_", writes=True)
    _add("{0}.copy_({1})", lambda scope: (scope.written(), {}), "copy_", writes=True, exact=True)
    _add("{0}[{at}:].copy_({1})", lambda scope: scope.part(), "copy_part", writes=True, exact=True)
    _add("{0}[..., ::2].mul_({number})", lambda scope: ((scope.target(1),), {"number": 0.5}), "mul_part", writes=True)
    _add("{0}.zero_()", lambda scope: ((scope.target(),), {}), "zero_", writes=True, exact=True)
    _add("{0}.tanh_()", lambda scope: ((scope.target(),), {}), "tanh_", writes=True)
    _add("{0}.fill_({number})", lambda scope: ((scope.target(),), {"number": scope.choose([0.5, 1])}), "fill_", writes=True, exact=True)
    _add("{0}.index_put_(({1},), {2}, accumulate={sum})", lambda scope: scope.put(), "index_put_", writes=True)


def _views() -> None:
    view = {"exact": True}
    _add("{0}.transpose({a}, {b})", _one(False, 1, a=_dim, b=_dim), "transpose", **view)
    _add("{0}.permute({order})", _one(False, 2, order=_order), "permute", **view)
    _add("{0}[{start}::{step}]", _one(False, 1, start=[0, 1], step=[1, 2]), "slice_first", **view)
    _add("{0}[..., {start}:{end}:{step}]", _one(False, 1, start=[0, 1], end=[2, -1, 9], step=[1, 2]), "slice_last", **view)
    _add("{0}.unsqueeze({dim})", _one(False, 0, dim=lambda d, s: d.number(0, len(s))), "unsqueeze", **view)
    _add("{0}.squeeze({dim})", _one(False, 1, dim=_dim), "squeeze", **view)
    _add(
        "{0}.expand({shape})",
        _one(
            False,
            0,
            shape=lambda d, s: (
                d.choose([1, 2, 3]),
                *(d.choose([2, 3]) if n == 1 else n for n in s),
            ),
        ),
        "expand",
        **view,
    )
    _add(
        "{0}.reshape({shape})",
        _one(
            False,
            1,
            shape=lambda d, s: d.choose(
                [(-1,), (1, -1), (*s[:-1], 1, s[-1]), (-1, s[-1]) if s[-1] else (-1,)]
            ),
        ),
        "reshape",
        **view,
    )
    _add("{0}.flatten({dim})", _one(False, 2, dim=[0, 1, -2]), "flatten", **view)
    _add("{0}.chunk(2, {dim})[0]", _one(False, 1, dim=_dim), "chunk", **view)
    _add("{0}.split(1, {dim})[-1]", _one(False, 1, dim=_dim), "split", **view)
    _add("{0}.select({dim}, -1)", _one(False, 1, dim=_dim), "select", **view)
    _add("{0}.unbind(0)[0]", _one(False, 1), "unbind", **view)
    _add("{0}.diagonal(dim1=-2, dim2=-1)", _one(False, 2), "diagonal", **view)
    _add("{0}.detach()", _one(), "detach", **view)
    _add("{0}.NAME()", _one(False), "clone", "contiguous", **view)
    _add("{0}.contiguous(memory_format=torch.channels_last)", _one(True, 4), "channels_last", **view)


def _rearranged() -> None:
    view = {"exact": True}
    _add("torch.flip({0}, ({dim},))", _one(False, 1, dim=_dim), "flip", **view)
    _add("torch.roll({0}, 1, {dim})", _one(False, 1, dim=_dim), "roll", **view)
    _add("{0}.NAME()", _one(False, 2), "tril", "triu", **view)
    _add("F.pad({0}, {by})", _one(True, 1, by=[(1, 0), (0, 2), (-1, 1)]), "pad", **view)
    _add("{0}.repeat({times})", _one(False, 1, times=lambda d, s: tuple(d.choose([1, 1, 2]) for _ in s)), "repeat", **view)
    _add("torch.NAME(({0}, {1}), {dim})", lambda scope: scope.joined(), "cat", "stack", **view)
    _add("torch.cat(({0}, {1}, {0}), {dim})", lambda scope: scope.joined(), "cat_three", **view)
    _add("torch.cat((torch.tensor([], dtype={0}.dtype, device={0}.device), {0}.flatten()))", _one(False), "cat_nothing", **view)
    _add("torch.where(torch.tensor([True, False], device={0}.device), {0}[..., None], 0)", _one(False), "where_constant", **view)


def _reductions() -> None:
    over = {"dims": _dims, "keep": [True, False]}
    _add("torch.NAME({0}, {dims}, keepdim={keep})", _one(True, 1, **over), "mean", "logsumexp")
    _add("torch.sum({0}, {dims}, keepdim={keep})", _one(False, 1, **over), "sum")
    _add("torch.NAME({0}, {dims}, keepdim={keep})", _one(True, 1, **over), "amax", "amin", rule="apart", exact=True)
    _add("torch.var({0}, {dims}, correction=0, keepdim={keep})", _one(True, 1, **over), "var")
    _add("{0}.sum()", _one(False), "sum_all")
    _add("{0}.mean()", _one(), "mean_all")
    _add("torch.NAME({0}, {dim})", _one(True, 1, dim=_dim), "argmax", "argmin", rule="apart", jumps=True, exact=True)
    _add("torch.max({0}, {dim}).values", _one(True, 1, dim=_dim), "max", rule="distinct", jumps=True, exact=True)
    _add("torch.NAME({0}, {dim})", lambda scope: scope.truth(), "any", "all", exact=True)
    _add(
        "torch.sort({0}, dim={dim}, stable=True, descending={down}).values",
        _one(False, 1, dim=_dim, down=[True, False]),
        "sort",
        rule="apart",
        exact=True,
    )
    _add("torch.argsort({0}, dim={dim}, stable=True)", _one(False, 1, dim=_dim), "argsort", rule="apart", jumps=True, exact=True)
    _add("torch.topk({0}, 1, {dim}).values", _one(True, 1, dim=_dim), "topk", rule="distinct", jumps=True, exact=True)


def _networks() -> None:
    _add("torch.NAME({0}, {dim})", _one(True, 1, dim=_dim), "softmax", "log_softmax")
    _add("F.layer_norm({0}, {1}.shape, {1}, {2}, eps=0.1)", lambda scope: scope.layer_norm(), "layer_norm")
    _add("F.rms_norm({0}, {1}.shape, {1}, eps=0.1)", lambda scope: (scope.layer_norm()[0][:2], {}), "rms_norm")
    _add("F.batch_norm({0}, {1}, {2}, {3}, {4}, training={training}, eps=0.1)", lambda scope: scope.batch_norm(), "batch_norm", writes=True)
    _add("F.linear({0}, {1}, {2})", lambda scope: scope.linear(), "linear")
    _add("{0} @ {1}", lambda scope: scope.matmul(), "matmul")
    _add("torch.bmm({0}, {1})", lambda scope: (scope.batched()[:2], {}), "bmm")
    _add("torch.baddbmm({2}, {0}, {1}, beta={beta}, alpha=0.5)", lambda scope: (scope.batched(), {"beta": scope.choose([0, 1, 0.5])}), "baddbmm")
    _add("F.conv2d({0}, {1}, {2}, stride={stride}, padding={padding}, groups={groups})", lambda scope: scope.convolution(), "conv2d")


def _layers() -> None:
    _add(
        "F.max_pool2d({0}, 2, stride={stride}, padding={padding})",
        _one(True, 4, stride=[1, 2], padding=[0, 1]),
        "max_pool2d",
        rule="apart",
        exact=True,
    )
    _add("F.avg_pool2d({0}, 2, stride={stride}, padding={padding})", _one(True, 4, stride=[1, 2], padding=[0, 1]), "avg_pool2d")
    _add("F.adaptive_avg_pool2d({0}, {size})", _one(True, 4, size=[1, 2]), "adaptive_avg_pool2d")
    _add("F.embedding({1}, {0})", lambda scope: scope.embedding(), "embedding")
    _add("torch.gather({0}, 0, {1})", lambda scope: scope.gathered(), "gather", exact=True)
    _add("torch.scatter_add({0}, 0, {1}, {2})", lambda scope: scope.scattered(), "scatter_add")
    _add("torch.index_select({0}, {dim}, {1})", lambda scope: scope.selected(), "index_select", exact=True)
    _add("{0}[{1}]", lambda scope: (scope.selected(0)[0], {}), "index", exact=True)
    _add("F.scaled_dot_product_attention({0}, {1}, {2}, is_causal={causal})", lambda scope: scope.attention(), "attention")
    _add("F.mse_loss({0}, {1})", lambda scope: (scope.alike(), {}), "mse_loss")
    _add("F.cross_entropy({0}, {1})", lambda scope: scope.classified(), "cross_entropy")
# fmt: on


for _rows in (
    _pointwise,
    _arithmetic,
    _casts,
    _inplace,
    _views,
    _rearranged,
    _reductions,
    _networks,
    _layers,
):
    _rows()
