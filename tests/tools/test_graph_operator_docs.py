# tests/tools/test_graph_operator_docs.py: the page of graph texts' operators says what the registry says.
from __future__ import annotations

import pytest

import graph_operator_docs

pytestmark = pytest.mark.every_run


def test_the_page_is_fresh() -> None:
    if graph_operator_docs.torch.__version__.startswith(
        "2.13."
    ):  # other releases have other schemas
        assert graph_operator_docs.PAGE.read_text() == graph_operator_docs.page()


def test_it_names_operators_of_every_source() -> None:
    found = graph_operator_docs.operators()
    for name in (
        "mm.default",
        "tanh.default",
        "max_pool2d_with_indices.default",
        "nll_loss_forward.default",
    ):
        assert name in found, name
    assert graph_operator_docs.schema("addmm.default").startswith("aten.addmm.default(Tensor self")
