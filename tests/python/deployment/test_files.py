# tests/python/deployment/test_files.py: what deploy() writes, what it refuses, what load() makes of it.
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import torch_graft
from inference import graft_infer
from torch_graft.deployment.traced_call import NotDeployable

pytestmark = pytest.mark.any_driver


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.register_buffer("shift", torch.tensor([1.0, -1.0]))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor, unused: int = 3) -> dict[str, Any]:
        y = self.fc(x) * scale + self.shift
        return {"y": y, "parts": (y.sum(), [y.abs()]), "kind": "sums", "count": unused}


@pytest.fixture
def named(device: str, tmp_path: Path) -> tuple[nn.Module, dict[str, torch.Tensor], Path]:
    model = Named().eval().to(device)
    inputs = {"x": torch.randn(3, 4, device=device), "scale": torch.tensor(2.0, device=device)}
    path = tmp_path / "named.graft"
    torch_graft.deploy(model, inputs, path, licence="MIT")
    return model, inputs, path


def test_results_keep_their_form(named: tuple[nn.Module, dict[str, torch.Tensor], Path]) -> None:
    model, inputs, path = named
    found, wanted = torch_graft.load(path)(**inputs), model(**inputs)
    assert list(found) == list(wanted)
    assert found["kind"] == "sums"
    assert found["count"] == 3
    assert isinstance(found["parts"], tuple)
    for name in ("y", "parts"):
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-6, atol=1e-6)


def test_weights_keep_their_names(named: tuple[nn.Module, dict[str, torch.Tensor], Path]) -> None:
    model, inputs, path = named
    loaded = torch_graft.load(path)
    assert set(loaded.state_dict()) == set(model.state_dict())
    doubled = {name: 2 * value for name, value in model.state_dict().items()}
    loaded.load_state_dict(doubled)
    model.load_state_dict(doubled)
    torch.testing.assert_close(loaded(**inputs)["y"], model(**inputs)["y"], rtol=1e-6, atol=1e-6)


def test_the_file_is_one_of_safetensors(named: tuple[nn.Module, Any, Path]) -> None:
    model, _, path = named
    stored = load_file(path)
    for name, value in model.state_dict().items():
        assert torch.equal(stored[name], value.cpu())


def test_calls_that_do_not_fit(named: tuple[nn.Module, dict[str, torch.Tensor], Path]) -> None:
    _, inputs, path = named
    loaded = torch_graft.load(path)
    with pytest.raises(
        TypeError, match="the model takes x, scale; got 1 arguments by position and none by name"
    ):
        loaded(inputs["x"])
    with pytest.raises(RuntimeError, match="size"):
        loaded(x=inputs["x"][:, :2], scale=inputs["scale"])
    loaded(**inputs)


class Sorts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svd(x).S + x.sum()


class GivesItsArgument(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Sorts(), r"Sorts needs PyTorch for .*aten\._linalg_svd.* \(test_files\.py:\d+\)"),
        (GivesItsArgument(), "is an argument or a weight"),
    ],
)
def test_what_needs_pytorch_is_refused_before_a_file_is_written(
    model: nn.Module, text: str, device: str, tmp_path: Path
) -> None:
    path = tmp_path / "never.graft"
    with pytest.raises(NotDeployable, match=text):
        torch_graft.deploy(model.eval().to(device), (torch.randn(3, 3, device=device),), path)
    assert not path.exists()


def test_wrong_arguments(device: str, tmp_path: Path) -> None:
    x = torch.randn(2, 4)
    layer = nn.Linear(4, 2)
    path = tmp_path / "never.graft"
    deploy: Any = torch_graft.deploy
    with pytest.raises(ValueError, match="trains"):
        deploy(layer, (x,), path)
    with pytest.raises(ValueError, match="not on a Graft device"):
        deploy(layer.eval(), (x,), path)
    with pytest.raises(TypeError, match=r"write \(x,\) for one tensor"):
        deploy(layer, x, path)
    with pytest.raises(TypeError, match=r"do not fit Linear\.forward"):
        deploy(layer, (x, x), path)
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module, got a function"):
        deploy(lambda y: y, (x,), path)
    with pytest.raises(RuntimeError, match="no/folder"):
        deploy(layer.to(device), (x.to(device),), tmp_path / "no/folder")
    assert not path.exists()


def test_damaged_files(named: tuple[nn.Module, Any, Path], tmp_path: Path) -> None:
    whole = named[2].read_bytes()
    path = tmp_path / "damaged.graft"
    first = 8 + int.from_bytes(whole[:8], "little")  # of a weight, or of a compiled kernel
    places = (4, 40, first, len(whole) - 1)
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in places]
    for damaged in (whole[:-1], whole[:100], b"", *flipped):
        path.write_bytes(damaged)
        with pytest.raises(RuntimeError, match=r"damaged\.graft"):
            torch_graft.load(path)


def test_processors_are_those_of_host_devices(
    named: tuple[nn.Module, dict[str, torch.Tensor], Path],
) -> None:
    model, inputs, path = named
    levels = ("x86-64-v2", "x86-64-v3")
    driver = torch_graft._C.device_properties(0).driver
    if driver == "host":
        torch_graft.deploy(model, inputs, path, processors=levels)
        found = {name.partition(".x86")[2] for name in load_file(path) if "graft.blob." in name}
        assert found == {"-64-v2", "-64-v3"}
        return
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"host driver's devices.*'{driver}'"):
        torch_graft.deploy(model, inputs, path, processors=levels)
    ran = graft_infer(str(path), "--prepare", "--processor", levels[0])
    assert ran.returncode == 1
    assert "GRAFT_DEVICES=host" in ran.stderr
    assert path.read_bytes() == before
