# tests/python/deployment/test_programs.py: programs without Python: graft-infer, and one of a user's.
from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import torch_graft
from inference import PROGRAM, built, graft_infer

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]


@pytest.fixture
def model(device: str, tmp_path: Path) -> Iterator[Path]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = nn.Linear(3, 2).eval().to(device)
    path = tmp_path / "layer.graft"
    torch_graft.deploy(layer, (torch.ones(2, 3, device=device),), path, dynamic=True)
    yield path
    torch._dynamo.reset()


def wanted(path: Path, x: torch.Tensor) -> torch.Tensor:
    return torch_graft.load(path)(x.to(torch_graft.attaching.attached_name())).cpu()


def test_a_program_of_a_user(model: Path, tmp_path: Path) -> None:
    program = built(tmp_path, "cc", "-std=c99", source="deployed_program.c")
    ran = subprocess.run([program, model, "4"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    found = torch.tensor([float(line) for line in ran.stdout.split()])
    x = torch.arange(1.0, 13.0).reshape(4, 3)
    torch.testing.assert_close(found.reshape(4, 2), wanted(model, x), rtol=0, atol=0)
    ran = subprocess.run([program, tmp_path / "nowhere", "4"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "nowhere does not open" in ran.stderr


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.fc(x)
        return {"abs": y.abs(), "sum": y * scale + 1}


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_a_program_of_a_user_in_cpp(standard: str, device: str, tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    path = tmp_path / "scaled.graft"
    scale = torch.tensor(2.0, device=device)
    inputs = {"x": torch.ones(2, 3, device=device), "scale": scale}
    torch_graft.deploy(Scaled().eval().to(device), inputs, path, dynamic=True)
    source = "deployed_program.cpp"
    program = built(tmp_path, "c++", f"-std={standard}", "-Wconversion", "-pthread", source=source)
    ran = subprocess.run([program, path, "4"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    found = torch.tensor([float(line) for line in ran.stdout.split()])
    x = torch.arange(1.0, 13.0, device=device).reshape(4, 3)
    wanted = torch_graft.load(path)(x, scale)["sum"].cpu()
    torch.testing.assert_close(found.reshape(4, 2), wanted, rtol=0, atol=0)
    texts = ran.stderr.splitlines()
    assert len(texts) == 6
    assert texts[0] == 'there is no "factor", only x, scale: name one of these'
    assert texts[1].startswith('the input "scale" is missing')
    assert texts[2].startswith('the input "x" is given twice')
    assert "the model takes float32[?, 3]" in texts[3]
    assert "no result 7" in texts[5]
    ran = subprocess.run([program, tmp_path / "nowhere", "4"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "nowhere does not open" in ran.stderr
    torch._dynamo.reset()


def test_no_process_has_python_or_torch(model: Path) -> None:
    needed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1] for line in needed.splitlines()}
    assert "libgraft.so" in names
    assert not [one for one in names if one.startswith(("libpython", "libtorch", "libc10"))]


def test_describes_a_model(model: Path) -> None:
    ran = graft_infer(str(model))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "input  input: float32[?, 3]\noutput result: float32[?, 2]\n"


def test_ends_well_while_its_kernels_are_kept(model: Path, tmp_path: Path) -> None:
    """Drivers may save programs after they ran; what they loaded for that has handlers at exit."""
    numpy.save(tmp_path / "x.npy", numpy.ones((5, 3), "float32"))
    caches = {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    ran = graft_infer(
        str(model),
        "--input",
        str(tmp_path / "x.npy"),
        GRAFT_CACHE_DIR=str(tmp_path / "graft"),
        **caches,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "result: float32[5, 2]\n"


class Waves(nn.Module):
    """A formula that no pack has a kernel of."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * 1.2345).mul(torch.sigmoid(x)).cos() + x.tanh() * 0.4321


@pytest.mark.host_only
def test_kernels_of_a_file_need_no_compiler(device: str, tmp_path: Path) -> None:
    path, x = tmp_path / "waves.graft", torch.randn(5, 33)
    numpy.save(tmp_path / "x.npy", x.numpy())
    torch_graft.deploy(Waves().eval().to(device), (x.to(device),), path)
    bare = {"GRAFT_CC": str(tmp_path / "no-compiler"), "GRAFT_CACHE_DIR": str(tmp_path / "cache")}
    result = ("--output", f"{tmp_path}/out_")
    ran = graft_infer(str(path), "--input", str(tmp_path / "x.npy"), *result, **bare)
    assert ran.returncode == 0, ran.stderr
    found = torch.from_numpy(numpy.load(tmp_path / "out_result.npy"))
    torch.testing.assert_close(found, Waves()(x))


def test_bench_prints_times(model: Path, tmp_path: Path) -> None:
    numpy.save(tmp_path / "x.npy", numpy.ones((5, 3), "float32"))
    ran = graft_infer(str(model), "--input", str(tmp_path / "x.npy"), "--bench", "0.1")
    assert ran.returncode == 0, ran.stderr
    assert "result: float32[5, 2]" in ran.stdout
    assert " runs: min " in ran.stdout


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            numpy.ones((5, 4), "float32"),
            'input 0 ("input") is float32[5, 4], the model takes float32[?, 3]',
        ),
        (numpy.ones((5, 3), "float64"), "float64[5, 3]"),
        (numpy.asfortranarray(numpy.ones((5, 3), "float32")), "column-major"),
        (numpy.ones((5, 3), ">f4"), "dtype is '>f4'"),
        (numpy.array(["a"]), "dtype is '<U1'"),
    ],
)
def test_arrays_that_do_not_fit(
    model: Path, tmp_path: Path, array: numpy.ndarray, text: str
) -> None:
    numpy.save(tmp_path / "x.npy", array)
    ran = graft_infer(str(model), "--input", str(tmp_path / "x.npy"))
    assert ran.returncode == 1
    assert text in ran.stderr


def test_wrong_words(model: Path) -> None:
    for words, text in (
        (["--what"], "unknown argument --what"),
        ([str(model), "--device"], "--device wants a value"),
        ([str(model), "--device", "99"], "there is no device 99"),
        ([], "usage: graft-infer"),
    ):
        ran = graft_infer(*words)
        assert ran.returncode == 1
        assert text in ran.stderr
