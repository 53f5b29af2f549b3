"""torch.compile on the device: results, gradients and buffers are eager's, and nothing stays eager."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch
import torch_graft.compiler as graft_compiler
from compiler_models import CASES
from test_compiler_graphs import close, run


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    graft_compiler.reset_reports()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def reports() -> list[graft_compiler.Report]:
    made = graft_compiler.reports()
    for report in made:
        assert report.compiled, report.why
        counts = report.counts()
        assert counts is None or counts.eager == {}, report
    return made


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", CASES)
def test_models(name: str, train: bool, dynamic: bool, device: str) -> None:
    make_model, make_inputs = CASES[name]
    torch.manual_seed(1)
    eager = make_model().train(train).to(device)
    compiled = copy.deepcopy(eager)
    inputs = tuple(one.to(device) for one in make_inputs())
    if train and name not in ("mutating",):
        inputs = tuple(one.requires_grad_(one.is_floating_point()) for one in inputs)
    again = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in inputs)
    with torch.set_grad_enabled(train):
        call = torch.compile(compiled, fullgraph=True, dynamic=dynamic)
        close(run(compiled, call, again, train), run(eager, eager, inputs, train), name)
    assert [one.part for one in reports()] == (["forward", "backward"] if train else ["inference"])
