# tests/python/deployment/test_weights.py: weights in files beside a deployed model's.
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import torch_graft
from inference import graft_infer, infer
from torch_graft import _C

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("shift", torch.tensor([1.0, -1.0, 2.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + self.shift


@pytest.fixture
def model(device: str) -> nn.Module:
    torch.manual_seed(0)
    return Shifted().eval().to(device)


@pytest.fixture
def x(device: str) -> torch.Tensor:
    return torch.arange(8.0, device=device).reshape(2, 4)


def stored(model: nn.Module, path: Path, prefix: str = "") -> Path:
    save_file({prefix + name: one.cpu() for name, one in model.state_dict().items()}, path)
    return path


def references(path: Path) -> dict[str, str]:
    return _C.read_model(str(path))[0].references


def test_two_models_share_a_file_that_the_user_has(
    model: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    weights = stored(model, tmp_path / "model.safetensors")
    before = weights.read_bytes()
    for name, rows in (("one.graft", 1), ("two.graft", 2)):
        torch_graft.deploy(model, (x[:rows],), tmp_path / name, weights=weights)
        found = torch_graft.load(tmp_path / name)(x[:rows])
        torch.testing.assert_close(found, model(x[:rows]), rtol=1e-6, atol=1e-6)
        assert set(references(tmp_path / name).values()) == {"model.safetensors"}
        assert not [one for one in load_file(tmp_path / name) if not one.startswith("graft.blob.")]
    assert weights.read_bytes() == before
    result = infer(tmp_path / "two.graft", [x], tmp_path)["result"]
    torch.testing.assert_close(result, model(x).cpu(), rtol=1e-6, atol=1e-6)


def test_a_path_without_a_file_is_written(
    model: nn.Module, x: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch_graft.deploy(model, (x,), "model.graft", weights="parts.safetensors")
    written = load_file(tmp_path / "parts.safetensors")
    assert set(written) == set(model.state_dict())
    for name, value in model.state_dict().items():
        assert torch.equal(written[name], value.cpu())
    torch.testing.assert_close(torch_graft.load("model.graft")(x), model(x), rtol=1e-6, atol=1e-6)


def test_tensors_are_found_by_their_values_and_the_rest_is_kept(
    model: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    parts = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    save_file({"layer.fc.weight": model.fc.weight.detach().cpu()}, parts[0])
    save_file({"fc.bias": model.fc.bias.detach().cpu()}, parts[1])
    path = tmp_path / "model.graft"
    torch_graft.deploy(model, (x,), path, weights=parts)
    assert references(path) == {"fc.weight": "a.safetensors", "fc.bias": "b.safetensors"}
    assert "shift" in load_file(path)
    torch.testing.assert_close(torch_graft.load(path)(x), model(x), rtol=1e-6, atol=1e-6)


def test_files_that_do_not_have_the_model_s_values(
    model: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    path = tmp_path / "never.graft"

    def refused(weights: object, kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text):
            torch_graft.deploy(model, (x,), path, weights=weights)  # type: ignore[arg-type]
        assert not path.exists()

    other = stored(Shifted().to("cpu"), tmp_path / "other.safetensors")
    refused(other, RuntimeError, r"other\.safetensors: \"fc\.\w+\" has other values")
    half = stored(Shifted().half(), tmp_path / "half.safetensors")
    refused(half, RuntimeError, r"is float16\[.*\] there, and float32\[.*\] in the model")
    save_file({"x": torch.ones(1)}, tmp_path / "nothing.safetensors")
    refused(tmp_path / "nothing.safetensors", RuntimeError, "none of the model's 3 tensors")
    refused([other, tmp_path / "nowhere"], FileNotFoundError, "nowhere is one of 2 files")
    refused([], ValueError, "weights has no file")
    refused(path, RuntimeError, "give two paths")
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "never.graft"
    refused(stored(model, tmp_path / "right.safetensors"), RuntimeError, "into one folder")


def test_another_file_is_named_where_the_model_is_opened(
    model: nn.Module, x: torch.Tensor, tmp_path: Path
) -> None:
    path, weights = tmp_path / "model.graft", tmp_path / "w.safetensors"
    torch_graft.deploy(model, (x,), path, weights=weights)
    whole = weights.read_bytes()
    cases = [
        (whole[:-1], "is no readable file of tensors"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), r"is not the file that .*model\.graft was deployed"),
    ]
    for content, text in cases:
        weights.write_bytes(content)
        with pytest.raises(RuntimeError, match=text):
            torch_graft.load(path)
        ran = graft_infer(str(path))
        assert ran.returncode == 1
        assert str(weights) in ran.stderr
    weights.unlink()
    with pytest.raises(RuntimeError, match=r"w\.safetensors does not open.*put the one there"):
        torch_graft.load(path)
    weights.write_bytes(whole)
    torch_graft.load(path)(x)
