# tests/python/deployment/test_levels.py: files with kernels for levels of processors, opened where no compiler is.
from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import torch_graft
from inference import graft_infer
from sandbox import interpret

pytestmark = [pytest.mark.host_only, pytest.mark.one_mode]

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


class Waves(nn.Module):
    """Formulas that no pack has a kernel of, around a product."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(48, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(torch.sin(x * 1.2345).mul(torch.sigmoid(x)))
        return y.cos() + y.tanh() * 0.4321


def convolutional() -> nn.Module:
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Mish(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 64, 10), nn.Softmax(-1))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "waves": (Waves, (32, 48)),
    "convolutional": (convolutional, (4, 3, 16, 16)),
}
# Which of oneDNN and Graft's own kernels computes products and convolutions.
LIBRARY = pytest.mark.parametrize("library", ["1", "0"])


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Deployed:
    """A model in a file, what goes into it and what it gave in this process."""

    def __init__(self, name: str, device: str, folder: Path, processors: Sequence[str]) -> None:
        make, sizes = MODELS[name]
        torch.manual_seed(0)
        self.model, x = make().eval().to(device), torch.randn(sizes)
        self.example = (x.to(device),)
        with torch.no_grad():
            self.wanted = self.model(*self.example).cpu()
        self.folder, self.path = folder, folder / f"{name}.graft"
        self.input = folder / "x.npy"
        numpy.save(self.input, x.numpy())
        torch_graft.deploy(self.model, self.example, self.path, processors=processors)

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """In a process that has compiled nothing before."""
        cache = {"GRAFT_CACHE_DIR": str(self.folder / "cache"), "GRAFT_CACHE_LIMIT": "0"}
        return graft_infer(
            str(self.path), "--input", str(self.input), "--output", f"{self.folder}/out_",
            **(cache | environment),
        )  # fmt: skip

    def check(self, **environment: str) -> None:
        ran = self.run(**environment)
        assert ran.returncode == 0, ran.stderr
        found = torch.from_numpy(numpy.load(self.folder / "out_result.npy"))
        torch.testing.assert_close(found, self.wanted, rtol=1e-5, atol=1e-6)

    def blobs(self) -> dict[str, dict[str, bytes]]:
        """The compiled kernels by level ("" for one processor) and hash of their source."""
        found: dict[str, dict[str, bytes]] = {}
        for name, value in load_file(self.path).items():
            if name.startswith("graft.blob."):
                source, _, level = name.removeprefix("graft.blob.").partition(".")
                found.setdefault(level, {})[source] = value.numpy().tobytes()
        return found


def bare(folder: Path, **environment: str) -> dict[str, str]:
    """The environment of a system without a compiler."""
    return {"GRAFT_CC": str(folder / "no-compiler"), "GRAFT_ZIG": "", **environment}


def as_level(level: str) -> dict[str, str]:
    return {"GRAFT_HOST_ISA": level.removeprefix("x86-64-")}


def reached(deployed: Deployed) -> list[str]:
    """The levels that this processor runs."""
    ran = deployed.run(**as_level(LEVELS[-1]))
    if ran.returncode == 0:
        return list(LEVELS)
    [best] = re.findall(r"this processor runs (x86-64-v\d) at most", ran.stderr)
    return list(LEVELS[: LEVELS.index(best) + 1])


@LIBRARY
@pytest.mark.parametrize("name", MODELS)
def test_runs_on_each_level_without_a_compiler(
    name: str, library: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system may have no oneDNN either."""
    deployed = Deployed(name, device, tmp_path, LEVELS)
    monkeypatch.setenv("GRAFT_HOST_LIBRARY", library)
    levels = reached(deployed)
    deployed.check(**bare(tmp_path))
    for level in levels:
        deployed.check(**bare(tmp_path, **as_level(level)))
    for level in LEVELS[len(levels) :]:
        ran = deployed.run(**bare(tmp_path, **as_level(level)))
        assert ran.returncode == 1
        assert f"this processor runs {levels[-1]} at most" in ran.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", MODELS)
def test_other_processors_need_a_compiler_for_a_file_of_one(
    name: str, device: str, tmp_path: Path
) -> None:
    """What the other tests run has kernels that no pack has."""
    deployed = Deployed(name, device, tmp_path, ())
    assert list(deployed.blobs()) == [""]
    deployed.check(**bare(tmp_path))
    ran = deployed.run(**bare(tmp_path, **as_level("x86-64-v2")))
    assert ran.returncode == 1
    assert "no C compiler" in ran.stderr
    deployed.check(**as_level("x86-64-v2"))


def test_blobs_say_their_level(device: str, tmp_path: Path) -> None:
    blobs = Deployed("waves", device, tmp_path, LEVELS).blobs()
    assert sorted(blobs) == sorted(LEVELS)
    for level, kernels in blobs.items():
        start = b"grafth" + level.removeprefix("x86-64-").encode()
        assert kernels
        assert {one[:8] for one in kernels.values()} == {start}
    second, third, fourth = (blobs[level] for level in LEVELS)
    common = second.keys() & third.keys() & fourth.keys()
    assert common, "formulas have the same source for every width"
    assert all(second[one][32:] != fourth[one][32:] for one in common)
    for kernels in (second, third, fourth):
        assert kernels.keys() - common, "products have tiles of their own for each width"


@LIBRARY
def test_a_level_serves_the_processors_above_it(
    library: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = Deployed("waves", device, tmp_path, LEVELS[:1])
    monkeypatch.setenv("GRAFT_HOST_LIBRARY", library)
    assert list(deployed.blobs()) == [LEVELS[0]]
    deployed.check(**bare(tmp_path))
    for level in reached(deployed):
        deployed.check(**bare(tmp_path, **as_level(level)))


@pytest.mark.parametrize("processors", [LEVELS[1:], LEVELS[2:]])
def test_a_processor_below_the_lowest_level_needs_a_compiler(
    processors: tuple[str, ...], device: str, tmp_path: Path
) -> None:
    deployed = Deployed("waves", device, tmp_path, processors)
    below = as_level("x86-64-v2")
    ran = deployed.run(**bare(tmp_path, **below))
    assert ran.returncode == 1
    for word in ("no C compiler", "x86-64-v2", *processors, "among its processors"):
        assert word in ran.stderr, ran.stderr
    deployed.check(**below)
    own = reached(deployed)[-1]
    ran = deployed.run(**bare(tmp_path))
    if own in processors:
        assert ran.returncode == 0, ran.stderr
    else:
        assert ran.returncode == 1
        assert own in ran.stderr
        assert processors[0] in ran.stderr


def test_levels_join_the_processors_own_kernels(device: str, tmp_path: Path) -> None:
    """graft-infer adds those of levels to a file, and leaves what it has."""
    deployed = Deployed("waves", device, tmp_path, ())
    own = deployed.blobs()[""]
    words = [word for level in LEVELS for word in ("--processor", level)]
    ran = graft_infer(str(deployed.path), "--prepare", *words)
    assert ran.returncode == 0, ran.stderr
    assert sorted(deployed.blobs()) == ["", *LEVELS]
    assert deployed.blobs()[""] == own
    deployed.check(**bare(tmp_path))
    deployed.check(**bare(tmp_path, **as_level("x86-64-v2")))


LOADS = """
import torch_graft
model = torch_graft.load({path!r})
x = torch.from_numpy(numpy.load({x!r})).to(D)
print(json.dumps(model(x).cpu().tolist()))
"""


def test_python_needs_no_compiler(device: str, tmp_path: Path) -> None:
    deployed = Deployed("convolutional", device, tmp_path, LEVELS)
    code = "import numpy\n" + LOADS.format(path=str(deployed.path), x=str(deployed.input))
    cache = {"GRAFT_CACHE_DIR": str(tmp_path / "cache")}
    ran = interpret(code, 200, **cache, **bare(tmp_path, **as_level("x86-64-v2")))
    torch.testing.assert_close(torch.tensor(ran.value()), deployed.wanted, rtol=1e-5, atol=1e-6)


def test_wrong_processors(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = nn.Linear(4, 2).eval().to(device), torch.randn(3, 4, device=device)
    path = tmp_path / "layer.graft"
    with pytest.raises(TypeError, match=r"write \('x86-64-v3',\) for one"):
        torch_graft.deploy(layer, (x,), path, processors="x86-64-v3")
    with pytest.raises(ValueError, match=r"has 'x86-64-v9', expected some of x86-64-v2, "):
        torch_graft.deploy(layer, (x,), path, processors=("x86-64-v3", "x86-64-v9"))
    assert not path.exists()
    monkeypatch.setenv("GRAFT_CC", str(tmp_path / "no-compiler"))
    monkeypatch.setenv("GRAFT_CACHE_DIR", str(tmp_path / "cache"))
    model = Waves().eval().to(device)
    with pytest.raises(RuntimeError, match=r"without kernels for x86-64-v3: .*no C compiler"):
        torch_graft.deploy(
            model, (torch.randn(2, 48, device=device),), path, processors=("x86-64-v3",)
        )


def test_wrong_words(device: str, tmp_path: Path) -> None:
    path = tmp_path / "layer.graft"
    torch_graft.deploy(nn.Linear(4, 2).eval().to(device), (torch.randn(3, 4, device=device),), path)
    before = path.read_bytes()
    for words, text in (
        (["--processor", "x86-64-v3"], "--processor goes with --prepare"),
        (["--prepare", "--processor"], "--processor wants a value"),
        (["--prepare", "--processor", "v3"], "there is no level of processors 'v3'"),
    ):
        ran = graft_infer(str(path), *words)
        assert ran.returncode == 1
        assert text in ran.stderr
    assert path.read_bytes() == before


def test_a_training_step_for_levels(device: str, tmp_path: Path) -> None:
    model, x = Waves().to(device), torch.randn(32, 48)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path, inputs = tmp_path / "step.graft", tmp_path / "x.npy"
    torch_graft.deploy_training_step(
        model, lambda net, x: net(x).square().mean(), optimizer, (x.to(device),), path,
        processors=LEVELS[:2],
    )  # fmt: skip
    numpy.save(inputs, x.numpy())
    with torch.no_grad():
        wanted = model(x.to(device)).square().mean().cpu()
    ran = graft_infer(
        str(path), "--input", str(inputs), "--output", f"{tmp_path}/out_",
        **bare(tmp_path, GRAFT_CACHE_DIR=str(tmp_path / "cache"), GRAFT_CACHE_LIMIT="0",
               **as_level("x86-64-v2")),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = torch.from_numpy(numpy.load(tmp_path / "out_loss.npy"))
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
