"""torchrun starts the examples, and starts ranks again after one died."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from rank_processes import free_port
from sandbox import NAME, ROOT

pytestmark = pytest.mark.one_mode


def torchrun(*arguments, timeout=280):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                "--master-port", str(free_port())]  # fmt: skip
    return subprocess.run([*launcher, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, "GRAFT_HOST_DEVICES": "2"})  # fmt: skip


@pytest.mark.parametrize("example", ["ddp", "fsdp2"])
def test_the_example_runs_on_two_ranks(tmp_path, example):
    ran = torchrun(ROOT / "examples" / f"{example}.py", "--out", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("2 ranks: accuracy 0.9")
    assert json.loads((tmp_path / f"{example}.json").read_text())["ranks"] == 2


@pytest.mark.any_driver
def test_ranks_that_lost_one_start_again_from_the_checkpoint(tmp_path):
    """Rank 1 is killed in the third step of the first run; the second run goes on from there."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, pathlib, signal, torch, torch.distributed as dist
        from datetime import timedelta

        saved = pathlib.Path({str(tmp_path)!r}) / "saved.pt"
        dist.init_process_group(timeout=timedelta(seconds=30))
        state = torch.load(saved) if saved.exists() else {{"step": 0, "sum": 0.0}}
        first = state["step"] == 0
        while state["step"] < 5:
            if first and state["step"] == 2 and dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            one = torch.ones(1000, device="{NAME}")
            dist.all_reduce(one)
            state = {{"step": state["step"] + 1, "sum": state["sum"] + one.mean().item()}}
            if dist.get_rank() == 0:
                torch.save(state, saved)
            dist.barrier()
        if dist.get_rank() == 0:
            print("restarts", os.environ["TORCHELASTIC_RESTART_COUNT"], "sum", state["sum"])
        dist.destroy_process_group()
    """)
    )
    ran = torchrun("--max-restarts", "1", script)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip() == "restarts 1 sum 10.0"
