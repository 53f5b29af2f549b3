# tests/python/compiler/test_size_numbers.py: floating-point numbers that a graph of symbolic sizes makes of them.
"""Forward and backward graphs are compiled, and results and gradients are the CPU's at every size."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
import torch

import torch_graft.compiler as graft_compiler

pytestmark = pytest.mark.usefixtures("fresh")

Function = Callable[[torch.Tensor], torch.Tensor]


NUMBERS: dict[str, Function] = {
    "variance": lambda a: torch.var(a, (2,), correction=0, keepdim=True),
    "deviation": lambda a: torch.std(a, (1, 2), correction=1),
    "root": lambda a: a / math.sqrt(a.size(-1)),
    "sum of quotients": lambda a: a * (a.size(0) / a.size(1) + 0.5),
    "difference, twice": lambda a: (a - 1 / a.size(-1)) * (1 / a.size(-1) - 2),
    "power": lambda a: (a.abs() + 1) ** (1.0 / a.size(-1)),
    "number minus tensor": lambda a: 1 / a.size(0) - a,
    "of a product of sizes": lambda a: a.sum() / float(a.size(0) * a.size(1)),
    "tensor of a number": lambda a: a + torch.scalar_tensor(1.0 / a.size(1), device=a.device),
    "float64": lambda a: a.double() * (1.0 / a.size(1)),
    "float16": lambda a: a.half() * (1.0 / a.size(1)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_sizes_are_compiled(name: str, device: str) -> None:
    torch.manual_seed(5)
    compiled = torch.compile(NUMBERS[name], dynamic=True, fullgraph=True)
    for sizes in ((2, 3, 4, 5), (3, 7, 2, 9)):
        inputs = torch.randn(sizes, requires_grad=True)
        mine = inputs.detach().to(device).requires_grad_()
        got, expected = compiled(mine), NUMBERS[name](inputs)
        torch.testing.assert_close(got.cpu(), expected)
        got.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(mine.grad.cpu(), inputs.grad)
    assert {report.part for report in graft_compiler.reports()} == {"forward", "backward"}
    assert all(report.compiled for report in graft_compiler.reports())


def test_a_number_without_a_tensor_s_place_stays_eager(device: str) -> None:
    def widen(a: torch.Tensor) -> torch.Tensor:
        return torch.full((1, 1), 1.0 / a.size(0), device=a.device) + a

    inputs = torch.randn(3, 4)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = torch.compile(widen, dynamic=True)(inputs.to(device))
    torch.testing.assert_close(got.cpu(), widen(inputs))
    assert any("a SymFloat, as an argument" in str(one.message) for one in said)
