# tests/python/compiler/test_host_numbers.py: numbers in host memory that a compiled graph only reads.
"""Steps and rates in 0-dim tensors on the CPU, as optimizers have them: results are the CPU's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_graft.compiler as graft_compiler

pytestmark = pytest.mark.usefixtures("fresh")

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


READS: dict[str, Function] = {
    "power of a constant": lambda p, step: p * 0.9**step,
    "power of a constant tensor": lambda p, step: p * 0.9 ** torch.tensor(2.0) + step,
    "bias correction": lambda p, step: p / (1 - 0.9**step).sqrt(),
    "in addcdiv": lambda p, step: p.addcdiv(p, p.square() + 5) * (1 - 0.9**step),
    "clamped": lambda p, step: p * step.clamp(min=1, max=2),
    "minimum": lambda p, step: p + torch.minimum(step / 7, torch.tensor(1.0)),
    "power of a tensor": lambda p, step: p.abs() ** (step / 2),
    "tensor as a power": lambda p, step: (step + 1) ** p,
    "bounds": lambda p, step: p.clamp(step * 0.1 - 1, step * 0.2),
    "lower bound": lambda p, step: p.clamp(min=step - 3),
    "lerp": lambda p, step: p.lerp(p * 2, step * 0.1),
    "where": lambda p, step: torch.where(p > 0, p, step.exp()),
    "comparison": lambda p, step: torch.where(step > 2, p, p * 2),
    "whole numbers": lambda p, step: p * (step.long() // 2),
    "double": lambda p, step: p * (step.double() / 3),
    "in place": lambda p, step: p.clone().sub_(step.log1p()),
    "moved": lambda p, step: p * (step * 2).to(p.device),
    "copied as it is": lambda p, step: torch.cat([p[0], step.to(p.device)[None]]),
    "copied, as the one operand": lambda p, step: torch.cumsum(step.to(p.device), 0),
    "index_fill": lambda p, step: p.index_fill(0, torch.ones(1, dtype=torch.long, device=p.device), step + 1),
    "foreach": lambda p, step: torch._foreach_mul([p, p * 2], step * 2)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_what_reads_a_number_is_compiled(name: str, device: str) -> None:
    torch.manual_seed(3)
    p = torch.randn(4, 5)
    compiled = torch.compile(READS[name], fullgraph=True)
    for number in (3.0, 5.0):
        step = torch.tensor(number)
        got = compiled(p.to(device), step)
        torch.testing.assert_close(got.cpu(), READS[name](p, step))
    assert all(report.compiled for report in graft_compiler.reports())


@pytest.mark.parametrize("name", ["power of a constant", "bias correction", "where"])
@pytest.mark.parametrize("number_learns", [False, True], ids=["read", "learned"])
def test_gradients(name: str, number_learns: bool, device: str) -> None:
    def results(function: Function, where: str) -> Any:
        torch.manual_seed(3)
        p = torch.randn(4, 5).to(where).requires_grad_()
        step = torch.tensor(3.0, requires_grad=number_learns)
        out = function(p, step)
        out.square().sum().backward()
        return out.detach().cpu(), p.grad.cpu(), step.grad

    with warnings.catch_warnings():
        # A gradient in host memory is no result of the device's graph: that one stays eager.
        warnings.filterwarnings("ignore", "torch.compile runs this backward graph")
        got = results(torch.compile(READS[name]), device)
    torch.testing.assert_close(got, results(READS[name], "cpu"))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["AdamW8bit", "Adam8bit", "AdamW4bit", "Adam4bit", "_AdamW"])
def test_optimizers_of_torchao(name: str, compiled: bool, device: str) -> None:
    from torchao import optim

    def trained(where: str) -> torch.Tensor:
        torch.manual_seed(3)
        weight = torch.nn.Parameter(torch.randn(64, 128).to(where))
        optimizer = getattr(optim, name)([weight], lr=1e-2)
        for number in range(3):
            gradient = (torch.arange(weight.numel()) % 17 - 8).view_as(weight) * 0.1 * (number + 1)
            weight.grad = gradient.to(where)
            optimizer.step()
        return weight.detach().cpu()

    # Their step calls torch.compile by itself.
    with torch.compiler.set_stance("default" if compiled else "force_eager"):
        got = trained(device)
    with torch.compiler.set_stance("force_eager"):
        expected = trained("cpu")
    # One code of 4 bits more or less moves a weight by less than a tenth of a step.
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-3 if "4bit" in name else 1e-5)
