# tests/python/compiler/test_operators.py: what the graph compiler claims to compute, an operator at a time.
"""Each operator of PyTorch's database that the compiler's table names, compiled alone, beside eager."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from sandbox import ROOT
from torch_graft import _C, compiler
from torch_graft import private_names as inside

pytestmark = pytest.mark.one_mode

_NAMED = re.findall(
    r'X\((k\w+), (k\w+),[\s\\]*"(\w+)\.', (ROOT / "src/compiler/graph/operators.h").read_text())  # fmt: skip
_EXPANDED = set(
    re.findall(r"case (k\w+):", (ROOT / "src/compiler/passes/composites.cpp").read_text())
)
# Random numbers have tests of their own; nothing here fixes what they are.
_KINDS = {"kCopy", "kReduction", "kView", "kMatmul", "kConvolution"}
_CLAIMED = {
    overload.split(".")[0]
    for row in json.loads(_C.op_table_json())
    for overload in row["overloads"]
} | {stem for name, kind, stem in _NAMED if kind in _KINDS or name in _EXPANDED}
_DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool)


def _claims(entry: Any) -> bool:
    stem = entry.name.removeprefix("nn.functional.").removeprefix("special.")
    return bool({entry.aten_name, stem, f"_{stem}", f"native_{stem}"} & _CLAIMED)


_CASES = [
    pytest.param(entry, dtype, id=f"{entry.formatted_name}-{str(dtype).removeprefix('torch.')}")
    for entry in op_db if _claims(entry)
    for dtype in _DTYPES if dtype in entry.dtypes
]  # fmt: skip


def moved(tree: Any, device: str) -> Any:
    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad)

    return pytree.tree_map(move, tree)


def outcome(function: Any, given: Any) -> tuple[list[torch.Tensor], list[Any]]:
    """The results of a call, and the gradients of its arguments."""
    results = [one for one in pytree.tree_leaves(function(given)) if isinstance(one, torch.Tensor)]
    learned = [one for one in pytree.tree_leaves(given)
               if isinstance(one, torch.Tensor) and one.requires_grad]  # fmt: skip
    differentiable = [one for one in results if one.requires_grad]
    if not learned or not differentiable:
        return results, []
    slopes = [torch.linspace(-1, 1, one.numel(), device=one.device).to(one.dtype).view(one.shape)
              for one in differentiable]  # fmt: skip
    return results, list(torch.autograd.grad(differentiable, learned, slopes, allow_unused=True))


def samples(entry: Any, dtype: torch.dtype) -> list[Any]:
    """The first ones, and the first that has no elements."""
    learns = dtype == torch.float32 and entry.supports_autograd
    every = list(entry.sample_inputs("cpu", dtype, requires_grad=learns))
    chosen = list(islice(every, 2 if learns else 1))
    empty = [one for one in every if isinstance(one.input, torch.Tensor) and not one.input.numel()]
    return chosen + empty[:1]


def compare(entry: Any, sample: Any, dtype: torch.dtype, device: str) -> None:
    torch._dynamo.reset()
    compiler.reset_reports()
    given = (sample.input, sample.args, sample.kwargs)

    def call(arguments: Any) -> Any:
        first, others, named = arguments
        return entry.op(first, *others, **named)

    expected = outcome(call, moved(given, device))
    got = outcome(torch.compile(call, fullgraph=True, dynamic=False), moved(given, device))
    loose = (
        {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}
    )
    torch.testing.assert_close(got, expected, equal_nan=True, **loose)
    assert compiler.reports()
    for report in compiler.reports():
        assert report.compiled, report.why
        counts = report.counts()
        assert counts is not None
        assert not counts.eager, counts.eager


@pytest.mark.parametrize(("entry", "dtype"), _CASES)
def test_an_operator_compiled_alone(entry: Any, dtype: torch.dtype, device: str) -> None:
    torch.manual_seed(1)
    for sample in samples(entry, dtype):
        compare(entry, sample, dtype, device)


def _written() -> list[str]:
    """Overloads with their arguments, as the two tables have them."""
    header = (ROOT / "src/compiler/graph/operators.h").read_text()
    source = (ROOT / "src/compiler/graph/operators.cpp").read_text()
    rows = [one for row in json.loads(_C.op_table_json()) for one in row["overloads"]]
    joined = re.sub(r'"[\s\\]*"', "", header + source)
    return rows + re.findall(r"\w+\.\w+\([^\s()]+\)", " ".join(re.findall(r'"([^"]*)"', joined)))


@pytest.mark.parametrize("of_target", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("of_source", [(0, 1, 2), (0, 2, 1)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5)])
def test_a_copy_has_the_strides_of_its_target(
    of_target: tuple[int, ...],
    of_source: tuple[int, ...],
    shape: tuple[int, ...],
    device: str,
    fresh: None,
) -> None:
    def copied(source: torch.Tensor) -> torch.Tensor:
        sizes = [0, 0, 0]
        for place, dim in enumerate(of_target):
            sizes[dim] = (3, 4, 5)[place]
        target = source.new_zeros(sizes, dtype=torch.float32).permute(of_target)
        return target.copy_(source)

    dense = torch.randn([shape[dim] for dim in of_source], dtype=torch.bfloat16, device=device)
    source = dense.permute(of_source)
    assert source.shape == shape
    expected, got = copied(source), torch.compile(copied, fullgraph=True)(source)
    assert got.stride() == expected.stride()
    assert torch.equal(got, expected)


@pytest.mark.every_run
def test_arguments_have_atens_names_places_and_defaults() -> None:
    checked = 0
    for text in _written():
        name, _, listed = text.rstrip(")").partition("(")
        stem, _, overload = name.partition(".")
        schema = inside.operator_schema(getattr(getattr(torch.ops.aten, stem), overload)).arguments
        for place, one in enumerate(listed.split(",")):
            name, equals, default = re.sub(r"^\d:", "", one).partition("=")
            if not name:
                continue
            checked += 1
            assert schema[place].name == name, text
            if equals and not default.startswith("=") and schema[place].default_value is not None:
                assert str(schema[place].default_value) in (default, f"{default}.0"), text
    assert checked > 100


def test_most_of_the_table_is_in_the_database() -> None:
    assert len(_CASES) > 200
