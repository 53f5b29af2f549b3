# tests/python/deployment/test_networks.py: networks that run without Python give what they gave with it.
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_graft
from inference import infer
from networks import NETWORKS

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


# In process, a layer is one operator of PyTorch's, with sums of another order.
OPERATORS_OF_PYTORCH = {"ViT"}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def leaves(result: object) -> list[torch.Tensor]:
    return [one for one in torch.utils._pytree.tree_leaves(result) if isinstance(one, torch.Tensor)]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_the_same_bits(name: str, device: str, tmp_path: Path) -> None:
    make_model, make_inputs = NETWORKS[name]
    torch.manual_seed(1)
    model = torch_graft.optimize(make_model().eval().to(device))
    inputs = tuple(one.to(device) for one in make_inputs())
    expected = leaves(model(*inputs))
    path = tmp_path / "model.graft"
    torch_graft.deploy(model, inputs, path)
    loaded = leaves(torch_graft.load(path)(*inputs))
    results = infer(path, inputs, tmp_path)
    assert len(results) == len(expected) == len(loaded)
    for (_, found), again, wanted in zip(sorted(results.items()), loaded, expected, strict=True):
        torch.testing.assert_close(found, again.cpu(), rtol=0, atol=0)
        if name in OPERATORS_OF_PYTORCH:
            torch.testing.assert_close(found, wanted.cpu(), rtol=1e-5, atol=1e-5)
        else:
            torch.testing.assert_close(found, wanted.cpu(), rtol=0, atol=0)


def test_one_graph_for_all_batches(device: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval().to(device)
    path = tmp_path / "model.graft"
    torch_graft.deploy(model, (torch.randn(3, 8, device=device),), path, dynamic=True)
    loaded = torch_graft.load(path)
    for rows in (2, 7, 64):
        x = torch.randn(rows, 8, device=device)
        wanted = model(x).detach().cpu()
        [found] = infer(path, [x], tmp_path).values()
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(loaded(x).cpu(), found, rtol=0, atol=0)
