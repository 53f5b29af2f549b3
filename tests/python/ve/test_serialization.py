"""Tensors of the slot in files and copies."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close


def saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    base = torch.arange(4.0, device="ve")
    return {
        "a": base,
        "view": base[1:],
        "b": torch.rand(3, device="ve:1"),
        "s": torch.eye(3, device="ve").to_sparse(),
    }


def places(state: dict[str, torch.Tensor]) -> list[str]:
    return [str(state[name].device) for name in ("a", "view", "b", "s")]


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_remember_the_devices(state: Any, weights_only: bool) -> None:
    found = torch.load(saved(state), weights_only=weights_only)
    assert places(found) == ["ve:0", "ve:0", "ve:1", "ve:0"]
    assert_close(found["a"], state["a"])
    assert_close(found["s"].to_dense(), state["s"].to_dense())
    found["a"][1] = 9
    assert found["view"][0] == 9


@pytest.mark.parametrize("target", ["ve:1", "cpu", torch.device("ve", 1)])
def test_map_location(state: Any, target: Any) -> None:
    found = torch.load(saved(state), map_location=target, weights_only=True)
    assert places(found) == [str(target)] * 4
    assert_close(found["b"].cpu(), state["b"].cpu())


def test_map_location_forms(state: Any) -> None:
    assert places(torch.load(saved(state), map_location={"ve:0": "ve:1", "ve:1": "ve:0"})) == [
        "ve:1", "ve:1", "ve:0", "ve:1",
    ]  # fmt: skip
    assert (
        places(torch.load(saved(state), map_location=lambda storage, place: storage.ve(1)))
        == ["ve:1"] * 4
    )
    assert torch.load(saved(torch.ones(3)), map_location="ve").is_ve
    if torch.graft.device_count():
        assert torch.load(saved(state["a"]), map_location="graft:1").device == torch.device(
            "graft", 1
        )
    with pytest.raises(RuntimeError, match="ve"):
        torch.load(saved(state), map_location="ve:7")


def test_copies(state: Any) -> None:
    for found in (copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert places(found) == ["ve:0", "ve:0", "ve:1", "ve:0"]
        assert_close(found["a"], state["a"])
        found["a"].fill_(9)
        assert state["a"][3] == 3
    assert copy.deepcopy(state)["view"].untyped_storage().nbytes() == 16
    one = copy.deepcopy([state["a"], state["view"]])
    one[0][1] = 7
    assert one[1][0] == 7
    twice = copy.deepcopy([state["a"].untyped_storage()] * 2)
    assert twice[0] is twice[1]
    assert twice[0].device == torch.device("ve", 0)
    assert copy.copy(state["a"]).is_ve


def test_modules_and_optimizers(state: Any) -> None:
    net = nn.Linear(2, 2).ve()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2, device="ve")).sum().backward()
    optimizer.step()
    other = nn.Linear(2, 2).ve(1)
    other.load_state_dict(torch.load(saved(net.state_dict()), map_location="ve:1"))
    assert_close(other.weight.cpu(), net.weight.cpu())
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(torch.load(saved(optimizer.state_dict())))
    assert {one.device for one in again.state[other.weight].values() if one.dim()} == {
        torch.device("ve", 1)
    }
    assert copy.deepcopy(net).weight.is_ve
