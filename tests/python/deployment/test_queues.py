# tests/python/deployment/test_queues.py: programs without Python whose calls do not wait.
from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_graft
from inference import built, program_of
from sandbox import ROOT

pytestmark = [pytest.mark.any_driver, pytest.mark.one_mode]

X = torch.arange(1.0, 13.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def model(device: str, tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "square.graft"
    torch_graft.deploy(nn.Linear(3, 3).eval().to(device), (X.to(device),), path)
    return path


def wanted(path: Path, x: torch.Tensor) -> torch.Tensor:
    return torch_graft.load(path)(x.to(torch_graft.attaching.attached_name())).cpu()


def ran(*words: object, **environment: str) -> str:
    done = subprocess.run(
        [str(one) for one in words], env=os.environ | environment, capture_output=True, text=True,
        timeout=120, cwd=Path(str(words[0])).parent,
    )  # fmt: skip
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_program_in_c(model: Path, tmp_path: Path) -> None:
    output = ran(built(tmp_path, "cc", "-std=c99", source="queue_program.c"), model)
    found = torch.tensor([[float(word) for word in line.split()] for line in output.splitlines()])
    once = wanted(model, X)
    torch.testing.assert_close(found[:, 0].reshape(4, 3), once, rtol=0, atol=0)
    torch.testing.assert_close(found[:, 1].reshape(4, 3), wanted(model, once), rtol=0, atol=0)


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_a_program_in_cpp(standard: str, model: Path, tmp_path: Path) -> None:
    words = ("c++", f"-std={standard}", "-Wconversion", "-pthread")
    output = ran(built(tmp_path, *words, source="queue_program.cpp"), model, GRAFT_HOST_DEVICES="2")
    found = torch.tensor([float(word) for word in output.split()])
    torch.testing.assert_close(found.reshape(4, 3), wanted(model, X), rtol=0, atol=0)


@pytest.mark.host_only
def test_a_device_that_fails_later_is_reported_by_the_queue(model: Path, tmp_path: Path) -> None:
    program = built(tmp_path, "c++", "-std=c++17", "-pthread", source="queue_program.cpp")
    text, *numbers = ran(program, model, "fails", GRAFT_HOST_FAULTS="copy:1").splitlines()
    assert text.startswith("deployed square.graft")
    assert "planted by GRAFT_HOST_FAULTS" in text
    found = torch.tensor([float(word) for word in numbers])
    torch.testing.assert_close(found.reshape(4, 3), wanted(model, X), rtol=0, atol=0)


def test_the_program_of_the_page(device: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/use/deploy/programs.md").read_text()
    [text] = [one for one in re.findall(r"^```cpp\n(.*?)^```", page, re.M | re.S) if "main" in one]
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(4, 16).eval().to(device), nn.Linear(16, 2).eval().to(device)
    rows = torch.ones(3, 4, device=device)
    torch_graft.deploy(encoder, (rows,), tmp_path / "encoder.graft")
    torch_graft.deploy(decoder, (encoder(rows),), tmp_path / "decoder.graft")
    source = tmp_path / "page.cpp"
    source.write_text(text)
    output = ran(program_of(source, "c++", "-std=c++17"))
    assert float(output) == pytest.approx(float(decoder(encoder(rows))[0, 0]), rel=1e-4)
