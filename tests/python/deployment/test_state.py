# tests/python/deployment/test_state.py: what a deployed model keeps between calls.
from __future__ import annotations

import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import torch_graft
from inference import built, graft_infer
from torch_graft.deployment.traced_call import NotDeployable

pytestmark = pytest.mark.any_driver


class Decoder(nn.Module):
    """Attention of one token after another over a cache of fixed size."""

    def __init__(self, width: int = 8, length: int = 6) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("keys", torch.zeros(length, width))
        self.register_buffer("values", torch.zeros(length, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(token).chunk(3, -1)
        place = self.filled.view(1)
        self.keys.index_copy_(0, place, key)
        self.values.index_copy_(0, place, value)
        scores = self.keys @ query.mT
        later = torch.arange(self.keys.shape[0], device=token.device)[:, None] > self.filled
        weights = scores.masked_fill(later, float("-inf")).softmax(0)
        self.filled += 1
        return weights.mT @ self.values


@pytest.fixture
def tokens(device: str) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(5, 1, 8, device=device)


@pytest.fixture
def decoder(device: str, tokens: torch.Tensor, tmp_path: Path) -> tuple[Decoder, Path]:
    model = Decoder().eval().to(device)
    with torch.no_grad():
        model(tokens[0])  # a prompt: the file begins after it
    before = {name: value.clone() for name, value in model.state_dict().items()}
    path = tmp_path / "decoder.graft"
    torch_graft.deploy(model, (tokens[1],), path)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), f"deploy() changed {name}"
    return model, path


def test_calls_go_on_where_the_last_one_ended(
    decoder: tuple[Decoder, Path], tokens: torch.Tensor
) -> None:
    model, path = decoder
    loaded = torch_graft.load(path)
    assert {name for name, _ in loaded.named_buffers()} == {"keys", "values", "filled"}
    first = {name: value.clone() for name, value in loaded.state_dict().items()}
    found = [loaded(token) for token in tokens[1:]]
    with torch.no_grad():
        wanted = [model(token) for token in tokens[1:]]
    torch.testing.assert_close(found, wanted)
    assert loaded.get_buffer("filled").item() == 5
    loaded.load_state_dict(first)
    torch.testing.assert_close(loaded(tokens[1]), wanted[0])


def test_a_program_keeps_it_in_files(
    decoder: tuple[Decoder, Path], tokens: torch.Tensor, tmp_path: Path
) -> None:
    model, path = decoder
    with torch.no_grad():
        wanted = [model(token) for token in tokens[1:]]
    told = graft_infer(str(path)).stdout
    assert "state  filled: int64[]" in told
    for token, result in zip(tokens[1:], wanted, strict=True):
        numpy.save(tmp_path / "x.npy", token.cpu().numpy())
        ran = graft_infer(str(path), "--input", f"{tmp_path}/x.npy", "--state", f"{tmp_path}/s_",
                          "--output", f"{tmp_path}/out_")  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        found = torch.from_numpy(numpy.load(tmp_path / "out_result.npy"))
        torch.testing.assert_close(found, result.cpu())
    assert numpy.load(tmp_path / "s_filled.npy") == 5
    numpy.save(tmp_path / "s_keys.npy", numpy.zeros((6, 7), "float32"))
    ran = graft_infer(str(path), "--input", f"{tmp_path}/x.npy", "--state", f"{tmp_path}/s_")
    assert ran.returncode == 1
    assert '("keys") is float32[6, 7], the model takes float32[6, 8]' in ran.stderr


def test_a_program_in_cpp_reads_and_writes_it(
    decoder: tuple[Decoder, Path], tmp_path: Path
) -> None:
    program = built(tmp_path, "c++", "-std=c++17", source="state_program.cpp")
    ran = subprocess.run([program, decoder[1]], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    *names, first, later, again = ran.stdout.splitlines()
    assert sorted(names) == ["filled 0", "keys 2", "values 2"]
    assert (first, later, again) == ("2", "5", "1")
    known = [line.split()[0] for line in names]
    assert f'no "nothing", only {", ".join(known)}' in ran.stderr


class Running(nn.Module):
    """Running statistics, with a count in a 0-dimensional tensor, and one graph for all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(0)
        self.norm.running_mean.lerp_(mean, 0.1)
        self.norm.num_batches_tracked.add_(1)
        return self.norm(x)


def test_running_statistics_of_all_batches(device: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    model = Running().eval().to(device)
    path = tmp_path / "running.graft"
    torch_graft.deploy(model, (torch.randn(6, 4, device=device),), path, dynamic=True)
    loaded = torch_graft.load(path)
    for batch in (6, 3, 17):
        x = torch.randn(batch, 4, device=device)
        with torch.no_grad():
            torch.testing.assert_close(loaded(x), model(x))
    torch.testing.assert_close(loaded.state_dict(), model.state_dict())


class WritesItsArgument(nn.Module):
    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        out.copy_(x + 1)
        return x * 2


def test_arguments_are_not_written(device: str, tmp_path: Path) -> None:
    x, out = torch.ones(3, device=device), torch.zeros(3, device=device)
    path = tmp_path / "never.graft"
    with pytest.raises(NotDeployable, match="writes to an argument: make it a buffer"):
        torch_graft.deploy(WritesItsArgument().eval(), (x, out), path)
    assert not path.exists()
    assert out.sum() == 0
