# conformance/torch_conformance/suites/optimizers.py: the aspects of optim_db's entries.
"""Five steps with the same gradients on the device and on the CPU's plain loop give the same parameters."""

from __future__ import annotations

from typing import Any

import torch

from torch_conformance.cells import cases, registry
from torch_conformance.cells.cases import Cell
from torch_conformance.cells.outcome import NotApplicable
from torch_conformance.cells.session import Session
from torch_conformance.suites import errors
from torch_conformance.suites.sample_loop import SEED, Place, all_samples, at_home, require, seed
from torch_conformance.tensors import compare
from torch_conformance.tensors.samples import Carrier

STEPS = 5
SHAPES = ((5, 3), (1, 7), (4, 4))  # Muon takes matrices only


def _start(dtype: torch.dtype) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(SEED)
    return [torch.randn(s, dtype=torch.float64, generator=source).to(dtype) for s in SHAPES]


def _gradient(
    parameter: torch.Tensor, start: torch.Tensor, step: int, sparse: bool
) -> torch.Tensor:
    source = torch.Generator().manual_seed(SEED + step)
    values = torch.randn(start.shape, dtype=torch.float64, generator=source).to(parameter.dtype)
    return (values.to_sparse(1) if sparse else values).to(parameter.device)


def _trained(info: Any, kwargs: dict[str, Any], dtype: torch.dtype, device: torch.device) -> Any:
    """Parameters after the steps."""
    start = _start(dtype)
    parameters = [torch.nn.Parameter(t.clone().to(device)) for t in start]
    given = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
    optimizer = info.optim_cls(parameters, **given)
    targets = [torch.zeros_like(t).to(device) for t in start]

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        pairs = zip(parameters, targets, strict=True)
        total = torch.stack([((p - t) ** 2).sum() for p, t in pairs]).sum()
        total.backward()
        return total

    for step in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(loss)
            continue
        for p, s in zip(parameters, start, strict=True):
            p.grad = _gradient(p, s, step, info.only_supports_sparse_grads)
        optimizer.step()
    return [p.detach() for p in parameters]


@registry.suite("optim")
def run(session: Session, cell: Cell) -> None:
    info = cases.entries("optim")[cell.entry]
    if cell.aspect == "errors":
        errors.optimizer(session, cell, info)
        return
    device, dtype = session.device, getattr(torch, cell.dtype)
    if cell.aspect == "fused" and device.type == "cpu" and "cpu" not in info.supports_fused_on:
        raise NotApplicable("PyTorch has no fused form of it for the CPU")
    flags = {"step": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    flag = flags[cell.aspect] if cell.aspect in info.supported_impls + ("step",) else {}
    if "foreach" not in info.supported_impls and cell.aspect == "step":
        flag = {}
    plain = {"foreach": False} if "foreach" in info.supported_impls else {}
    allowed = session.tolerances(info)

    def check(place: Place, number: int, sample: Any) -> None:
        home = torch.device("cpu")
        if cell.aspect != "step" and isinstance(sample.kwargs.get("lr"), torch.Tensor):
            raise NotApplicable("a tensor as learning rate needs capturable in this form")
        kwargs = dict(sample.kwargs)
        expected = at_home(lambda: _trained(info, kwargs | plain, dtype, home)).get()
        session.expects(expected, _start(dtype))
        seed()
        with place.surrounding():
            actual = _trained(info, kwargs | flag, dtype, place.device)
        text = compare.difference(actual, expected, allowed, "parameters")
        if text:
            exact = at_home(lambda: _trained(info, kwargs | plain, torch.float64, home))
            if exact.error or not compare.no_farther(actual, expected, exact.value, allowed):
                require(text)

    inputs = info.optim_inputs_func(device="cpu")
    all_samples(session, cell, inputs, check, Carrier(device))
