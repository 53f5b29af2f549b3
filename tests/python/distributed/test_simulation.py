"""Hundreds of ranks in simulated time: collectives and training steps take what the formulas say."""

import json
import os
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

import simulated_training
from rank_processes import run_ranks, values
from sandbox import NAME, ROOT, interpret

pytestmark = pytest.mark.both_modes

HERE = str(Path(__file__).parent)
COMPUTE = "flops=100G,memory=1T,launch=0"
BANDWIDTH, LATENCY = 2e9, 5e-6
SIZES = (64, 256)
BYTES = 4 * simulated_training.PARAMETERS


def ring(size, count, latency=LATENCY):
    """Seconds of an all_reduce of count bytes: each rank's part of 1/size crosses 2 (size - 1) links."""
    return 2 * (size - 1) / size * count / BANDWIDTH + 2 * (size - 1) * latency


def simulated(code, settings):
    """The last line that code prints as one of up to 256 mirrored ranks."""
    begin = f"import sys\nsys.path.insert(0, {HERE!r})\nfrom simulated_training import *\n"
    ran = interpret(
        begin + textwrap.dedent(code), timeout=200,
        GRAFT_HOST_SIMULATE=f"ranks=256,bandwidth=2G,{COMPUTE},{settings}",
    )  # fmt: skip
    return ran.value()


@cache
def with_latency():
    return simulated(
        """
        def measure():
            return {
                "reduce": {count: reduce_seconds(count) for count in (1, 1000, 1 << 20)},
                "ddp": step_seconds(data_parallel(100)),  # all gradients in one bucket
            }
        def refused():
            try:
                dist.send(torch.ones(1, device=D), 1)
            except RuntimeError as error:
                return str(error)
        found = {size: in_group(size, measure) for size in (2, 64, 256)}
        found["send"] = in_group(4, refused)
        product = torch.ones(256, 256, device=D)
        found["matmul"] = seconds(lambda: product @ product)
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
            product @ product
        averages = {row.key: row for row in prof.key_averages()}
        found["profiled"] = averages["aten::mm"].self_device_time_total / 1e6
        print(json.dumps(found))
        """,
        "latency=5us",
    )


@cache
def without_latency():
    return simulated(
        """
        found = {"compute": step_seconds(network())}
        for size in (64, 256):
            found[size] = in_group(size, lambda: {
                "ddp": step_seconds(data_parallel(0.2)), "fsdp2": step_seconds(sharded()),
            })
        print(json.dumps(found))
        """,
        "latency=0",
    )


@pytest.mark.parametrize("size", [2, *SIZES])
def test_all_reduce_takes_the_time_of_the_closed_formula(size):
    for count, seconds in with_latency()[str(size)]["reduce"].items():
        assert seconds == pytest.approx(ring(size, 4 * int(count)), abs=2e-9)


def test_a_matrix_product_takes_the_time_of_its_operations():
    assert with_latency()["matmul"] == pytest.approx(2 * 256**3 / 100e9, abs=2e-9)


def test_profiles_tell_simulated_times():
    assert with_latency()["profiled"] == pytest.approx(2 * 256**3 / 100e9, rel=0.01)


def test_a_ddp_step_grows_with_the_ranks_as_its_all_reduce_does():
    few, many = (with_latency()[str(size)]["ddp"] for size in SIZES)
    grown = ring(SIZES[1], BYTES) - ring(SIZES[0], BYTES)
    assert many - few == pytest.approx(grown, rel=0.01)
    assert few > ring(SIZES[0], BYTES)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_communication_overlaps_with_computing(size, strategy):
    found = without_latency()
    compute, step = found["compute"], found[str(size)][strategy]
    # FSDP gathers the parameters twice and scatters the gradients: three of an all_reduce's halves.
    communication = ring(size, BYTES, 0) * {"ddp": 1, "fsdp2": 1.5}[strategy]
    assert max(compute, communication) * 0.999 <= step
    assert step < communication + 0.75 * compute


def test_ranks_in_processes_take_the_time_of_mirrored_ones():
    settings = f"bandwidth=2G,latency=5us,{COMPUTE}"
    real = values(run_ranks(2, simulated_training.real_rank, GRAFT_HOST_SIMULATE=settings))
    mirrored = simulated("print(json.dumps(in_group(2, times_of_two_ranks)))", "latency=5us")
    assert real[0] == pytest.approx(mirrored, rel=0.01)
    assert real[1] == pytest.approx(real[0], rel=0.01)


def test_send_is_refused():
    assert "need a process for each rank" in with_latency()["send"]


def launch(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "torch_graft", "simulate", *map(str, arguments)],
        capture_output=True, text=True, timeout=200, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_launcher_runs_a_script_as_rank_0(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, torch, torch.distributed as dist
        dist.init_process_group()
        one, here = torch.ones(3, device="{NAME}"), torch.ones(3)
        dist.all_reduce(one)
        dist.all_reduce(here)
        dist.barrier()
        mesh = dist.init_device_mesh("{NAME}", (8, 8))
        print(dist.get_rank(), dist.get_world_size(), one.tolist(), mesh.size(1), sys.argv[1:])
        dist.destroy_process_group()
    """)
    )
    ran = launch("ranks=64,compute=skip", script, "--steps", "3")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "0 64 [64.0, 64.0, 64.0] 8 ['--steps', '3']"


def test_the_launcher_wants_ranks(tmp_path):
    ran = launch("latency=5us", tmp_path / "train.py")
    assert ran.returncode != 0
    assert "'latency=5us' has no ranks=N; give a number above 1" in ran.stderr


def test_a_setting_that_is_not_understood_is_named():
    ran = interpret("torch.ones(1, device=D)", GRAFT_HOST_SIMULATE="bandwith=25G")
    assert ran.code != 0
    assert "'bandwith=25G' is unknown: give the keys flops" in ran.err


def test_the_example_draws_the_time_of_a_step(tmp_path):
    script = ROOT / "examples" / "scaling.py"
    ran = subprocess.run(
        [sys.executable, script, "--ranks", "2", "8", "--bandwidths", "10G", "--layers", "2",
         "--width", "64", "--out", tmp_path],
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / "scaling.json").read_text())
    for strategy in ("ddp", "fsdp2"):
        assert found["10G"][strategy]["8"] > found["10G"]["compute"] > 0
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
