# conformance/tests/suites/test_layouts.py: the aspects layouts and refusals find what they are there for, and nothing in the CPU.
from __future__ import annotations

import random

import pytest
import torch

import planted_layouts
from invocation import run
from torch_conformance.cells.cases import Cell, entries
from torch_conformance.cells.expectations import Expectations, Row
from torch_conformance.cells.session import Session
from torch_conformance.suites import layouts, variants
from torch_conformance.suites.operators import Case


def test_exactly_the_planted_faults_are_found(tmp_path):
    names = sorted({entry for entry, _, _ in planted_layouts.FAULTS} | {"sin", "asinh"})
    chosen = ("--suites", "op", "--ops", ",".join(names), "--dtypes", "float16,float32,complex64")
    aspects = ("--aspects", "layouts,refusals", "--plugin", "planted_layouts")
    done = run(tmp_path, *chosen, *aspects)
    assert done.code == 1, done.err
    cells = done.results()["cells"]
    found = {(c["entry"], c["dtype"], c["aspect"]): c for c in cells}
    for cell, words in planted_layouts.FAULTS.items():
        assert found[cell]["status"] in ("fail", "error"), cell
        assert words in found[cell]["message"], found[cell]
    red = {entry for (entry, _, _), c in found.items() if c["status"] != "pass"}
    assert red == {entry for entry, _, _ in planted_layouts.FAULTS}


@pytest.mark.parametrize("cell", planted_layouts.FAULTS, ids=" ".join)
def test_the_cpu_without_a_fault_passes(cell):
    entry, dtype, aspect = cell
    found = Session("cpu").run(Cell("op", entry, dtype, aspect))
    assert found.status == "pass", found
    assert found.samples > 8


def test_a_cell_draws_the_same_variants_each_time():
    def names():
        cell = Cell("op", "add", "float32", "layouts")
        case = Case(Session("cpu"), cell, entries("op")["add"])
        chance = variants.source(case)
        few = variants.drawn(case, chance)
        return [v.summary() for v in layouts._forward(case, chance, few)]

    assert names() == names()
    assert len(names()) > 6


def test_every_layout_keeps_the_shape_or_takes_a_part_of_it():
    chance = random.Random(0)
    tensor = torch.randn(2, 3, 4, 5, dtype=torch.complex64)
    for name, layout in layouts.SAME_VALUES.items():
        laid = layout(tensor, chance)
        assert laid.shape == tensor.shape, name
        assert name == "expanded batch" or laid.equal(tensor), name
    assert layouts.stepped(tensor, chance).stride() == (960, 160, 20, 2)
    assert layouts.transposed(tensor, chance).stride() == (1, 2, 6, 24)
    assert layouts.transposed(tensor, chance).storage_offset() == layouts.OFFSET
    assert layouts.conj(tensor, chance).is_conj()
    assert layouts.neg(tensor, chance).is_neg()
    assert 0 in layouts.expanded(tensor, chance).stride()
    assert layouts.overlapping(tensor, chance).stride() == (1, 1, 1, 1)
    assert layouts.zero(tensor, chance)._is_zerotensor()
    assert layouts.zero_dim(tensor, chance).shape == ()
    assert layouts.empty(tensor, chance).shape == (0, 3, 4, 5)


def test_layouts_arrive_as_they_are():
    for laid in (
        torch.randn(1, 3).expand(4, 3),
        torch.randn(3, 4).t(),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch._neg_view(torch.randn(3)),
        torch._efficientzerotensor((2, 3)),
    ):
        copy = variants.moved(laid, torch.device("cpu"))
        assert copy.stride() == laid.stride()
        assert (copy.is_conj(), copy.is_neg()) == (laid.is_conj(), laid.is_neg())
        assert copy._is_zerotensor() == laid._is_zerotensor()
        assert copy.clone().equal(laid.clone())


def test_a_row_takes_one_variant_out():
    cell = Cell("op", "exp", "float32", "layouts")
    rows = [
        Row("skip", "no such layout here", lambda key: key == "op|exp|float32|layouts/expanded")
    ]
    whole, less = (
        Session("cpu", expectations=Expectations(chosen, "cpu")).run(cell) for chosen in ([], rows)
    )
    assert less.samples == whole.samples - 1
    assert "expanded left out: no such layout here" in less.reason
