"""graft-driver-check --twice: programs of torch, serially and as they are, on right and faulty drivers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torch_graft

pytestmark = pytest.mark.one_mode
ASYNC = {"GRAFT_HOST_MODE": "async"}
CHECKER = Path(torch_graft.__file__).parent / "bin/graft-driver-check"
TRAIN = """
import torch
from torch import nn
torch.manual_seed(0)
inputs = torch.randn(64, 16).to("graft")
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 2)).to("graft")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
kept = torch.empty(64, 2, pin_memory=True)
for step in range(10):
    output = model(inputs)
    kept.copy_(output, non_blocking=True)
    optimizer.zero_grad()
    output.square().sum().backward()
    optimizer.step()
    torch.accelerator.synchronize()
print(model[0].weight.sum().item())
"""
# TorchScript runs without Python's lock: the threads launch side by side.
THREADS = """
import threading, warnings
import torch
warnings.simplefilter("ignore")

@torch.jit.script
def serve(state: torch.Tensor, bias: torch.Tensor, steps: int) -> torch.Tensor:
    for step in range(steps):
        state = state.t() * 0.5 + bias
    return state

def session(number):
    with torch.Stream("graft"):
        both.wait()
        serve(given[number], torch.full((32,), float(number), device="graft"), 200).cpu()

torch.manual_seed(0)
given = [torch.randn(32, 32).to("graft") for number in range(2)]
both = threading.Barrier(2)
threads = [threading.Thread(target=session, args=(number,)) for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
RANKS = """
import torch
import torch.distributed as dist
dist.init_process_group("graft")
sums = torch.arange(2000.0, device="graft") + dist.get_rank()
dist.all_reduce(sums)
sums.cpu()
kept = dist.distributed_c10d._get_default_group()  # lives longer than the device
"""
RANDOM = "import torch; torch.seed(); print(torch.rand(100).to('graft').mul(2).sum().item())"


def twice(
    tmp_path: Path, program: str, runs: int, *launcher: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(program)
    command = [str(CHECKER), "--twice", "--runs", str(runs), sys.executable, *launcher, str(script)]
    variables = os.environ | environment
    variables.pop("OCL_ICD_VENDORS", None)
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=400)


@pytest.mark.parametrize("driver", ["host", pytest.param("opencl", marks=pytest.mark.seldom)])
def test_right_drivers_agree(driver: str, tmp_path: Path) -> None:
    done = twice(tmp_path, TRAIN, 2, GRAFT_DEVICES=driver, **ASYNC)
    assert done.returncode == 0, done.stdout
    assert "The runs agree." in done.stdout
    # Ten outputs and a sum, at least.
    counts = [int(line.split(" results")[0].split()[-1]) for line in done.stdout.splitlines()[:-1]]
    assert len(counts) == 4
    assert min(counts) >= 11, done.stdout


def test_threads_that_mix_up_their_launches_differ(
    variant: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    variables = variant("shares_arguments") | ASYNC
    done = twice(tmp_path, THREADS, 2, **variables)
    assert done.returncode == 1, done.stdout
    assert "DIFFERS: shares_arguments.0: 4096 bytes behind command " in done.stdout, done.stdout


@pytest.mark.seldom
def test_threads_of_a_right_driver_agree(tmp_path: Path) -> None:
    done = twice(tmp_path, THREADS, 4, GRAFT_DEVICES="host", **ASYNC)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["sums_by_rank", pytest.param("plain", marks=pytest.mark.seldom)])
def test_ranks_get_the_same_sums(
    name: str, variant: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = twice(tmp_path, RANKS, 1, *launcher, **variant(name), **ASYNC)
    assert done.returncode == (1 if name == "sums_by_rank" else 0), done.stdout
    assert "graft-driver-trace: caller of" not in done.stdout
    assert ("RANKS DIFFER: sums_by_rank." in done.stdout) == (name == "sums_by_rank"), done.stdout


def test_programs_that_do_not_repeat_cannot_be_compared(tmp_path: Path) -> None:
    done = twice(tmp_path, RANDOM, 1, GRAFT_DEVICES="host")
    assert done.returncode == 2, done.stdout
    assert "Nothing can be said." in done.stdout


def test_failing_programs_show_what_they_wrote(tmp_path: Path) -> None:
    done = twice(tmp_path, "raise SystemExit('no such file')", 1)
    assert done.returncode == 2
    assert "ended with exit code 1" in done.stdout
    assert "| no such file" in done.stdout
