# tests/python/deployment/inference.py: runs graft-infer on tensors.
"""Runs deployed models in a process without Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy
import torch

import torch_graft
from sandbox import ROOT

PACKAGE = Path(torch_graft.__file__).parent
PROGRAM = PACKAGE / "bin" / "graft-infer"


def graft_infer(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def built(folder: Path, *compiler: str, source: str) -> Path:
    """A program of a copy of the source, with the package's headers and libraries alone."""
    copy = shutil.copy(ROOT / "tests/python/deployment" / source, folder)
    return program_of(Path(copy), *compiler)


def program_of(source: Path, *compiler: str) -> Path:
    folder, library = source.parent, PACKAGE / "lib"
    program = folder / "program"
    made = subprocess.run(
        [*compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{PACKAGE}/include", source,
         "-o", str(program), f"-L{library}", "-lgraft", f"-Wl,-rpath,{library}"],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return program


def infer(model: Path, inputs: Sequence[torch.Tensor], folder: Path) -> dict[str, torch.Tensor]:
    """The results of a run, by name. bfloat16 comes as float32."""
    words = [str(model)]
    for i, one in enumerate(inputs):
        numpy.save(folder / f"input{i}.npy", one.detach().cpu().numpy())
        words += ["--input", str(folder / f"input{i}.npy")]
    ran = graft_infer(*words, "--output", f"{folder}/out_")
    assert ran.returncode == 0, f"exit status {ran.returncode}: {ran.stderr}"
    return {
        path.name.removeprefix("out_").removesuffix(".npy"): torch.from_numpy(numpy.load(path))
        for path in folder.glob("out_*.npy")
    }
