"""python -m torch_graft run: ranks, how they end, and what it refuses."""

import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

import faked_library
from sandbox import NAME

pytestmark = pytest.mark.one_mode

LAUNCHER = [sys.executable, "-m", "torch_graft", "run"]
QUIET = {"OCL_ICD_VENDORS": "/nonexistent"}


def launch(*arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if key != "GRAFT_HOST_DEVICES"}
    return subprocess.run(
        [*LAUNCHER, *map(str, arguments)], capture_output=True, text=True, timeout=200,
        env=clean | QUIET | environment,
    )  # fmt: skip


def write(folder, text):
    (folder / "train.py").write_text(text)
    return folder / "train.py"


RANKS = """
import os, sys, torch
import torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.accelerator.set_device_index(rank)
dist.init_process_group()
x = torch.full((2,), rank + 1.0, device=f"{DEVICE}:{rank}")
dist.all_reduce(x)
sys.stdout.write(f"{rank} {x.tolist()} {sys.argv[1:]} {__name__} {os.path.basename(__file__)}\\n")
sys.stdout.flush()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("chosen", [None, "safetensors"])
def test_ranks_have_a_device_each_and_the_scripts_arguments(tmp_path, chosen):
    """As the script itself, or after an integration that the environment names."""
    script = write(tmp_path, RANKS.replace("{DEVICE}", NAME))
    named = {"GRAFT_INTEGRATIONS": chosen} if chosen else {}
    ran = launch("--nproc", 2, "--explain", script, "--lr", "2", **named)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == [
        f"{rank} [3.0, 3.0] ['--lr', '2'] __main__ train.py" for rank in range(2)
    ]
    line = re.search(r"^torch_graft run: .*$", ran.stderr, re.M)[0]
    assert line.startswith(
        f"torch_graft run: 2 ranks on '{NAME}'; integrations: {chosen or 'none'}; "
    )
    assert "GRAFT_HOST_DEVICES=2" in line
    assert ("changed safe_open" in ran.stderr) is bool(chosen)


ENDS = """
import os, sys, time
if os.environ["RANK"] == "1":
    {end}
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("sys.exit(7)", 7, "exit code 7"),
        ("os.kill(os.getpid(), 9)", -9, "SIGKILL"),
        ("raise ValueError('x')", 1, "exit code 1"),
    ],
)
def test_the_failure_of_one_rank_ends_all_with_its_code_or_signal(tmp_path, end, code, said):
    began = time.monotonic()
    ran = launch("--nproc", 2, write(tmp_path, ENDS.format(end=end)))
    assert ran.returncode == code
    assert f"torch_graft run: rank 1 ended with {said}; all ranks are ended" in ran.stderr
    assert time.monotonic() - began < 90


def test_an_interrupt_leaves_no_process(tmp_path):
    script = write(
        tmp_path, "import os, time\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(100)\n"
    )
    with subprocess.Popen(
        [*LAUNCHER, "--nproc", "2", str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ | QUIET,
    ) as launcher:  # fmt: skip
        ranks = [psutil.Process(int(launcher.stdout.readline())) for _ in range(2)]
        launcher.send_signal(signal.SIGINT)
        launcher.communicate(timeout=60)
    assert launcher.returncode == -signal.SIGINT
    psutil.wait_procs(ranks, timeout=20)
    assert not any(rank.is_running() and rank.status() != psutil.STATUS_ZOMBIE for rank in ranks)


def test_several_ranks_with_an_unknown_version_are_refused(tmp_path):
    """The script imports it through a file beside it."""
    (tmp_path / "beside.py").write_text("from safetensors.torch import safe_open\n")
    script = write(tmp_path, "import beside\nprint('started')\n")
    faked = faked_library.write(tmp_path, "9.9")
    ran = launch("--nproc", 2, script, PYTHONPATH=faked)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "safetensors 9.9 is not known to Graft" in ran.stderr
    assert "GRAFT_INTEGRATIONS=none" in ran.stderr


def test_one_rank_with_an_unknown_version_starts_and_is_warned(tmp_path):
    script = write(tmp_path, "import safetensors\nprint('started')\n")
    ran = launch("--nproc", 1, script, PYTHONPATH=faked_library.write(tmp_path, "9.9"))
    assert (ran.returncode, ran.stdout) == (0, "started\n")
    assert "safetensors 9.9 is not known to Graft" in ran.stderr


def test_a_module_runs_as_main(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text(
        "import sys, safetensors\nfrom . import __name__ as name\n"
        "print(name, __name__, sys.argv[1:], safetensors.safe_open('a', 'pt', 'DEVICE:1'))\n".replace(
            "DEVICE", NAME
        )
    )
    ran = launch(
        "--nproc", 1, "-m", "package.train", "x", PYTHONPATH=faked_library.write(tmp_path, "0.8.7")
    )
    assert ran.stdout == "package __main__ ['x'] 1\n", ran.stderr


def test_usage():
    assert "--nproc-per-node" in launch("--help").stdout
    ran = launch("--nproc", "many", "train.py")
    assert ran.returncode == 2
    assert "run: error: Unsupported nproc_per_node value: many" in ran.stderr
