"""What goes wrong between ranks: they end, hang, differ, run out of memory, or lose their store."""

import concurrent.futures
import re
import signal
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.testing import assert_close

import network_hosts
import rank_faults as faults
from rank_processes import free_port, run_ranks, values
from relay import Relay
from sandbox import ROOT, build_c
from torch_graft import drivers

pytestmark = pytest.mark.one_mode

ENGINES = ["auto", "staged"]


def test_a_killed_rank_is_named_twenty_times_in_a_row():
    """At another moment each time; five groups at once, for most of the time is waiting."""
    ports = [free_port() for _ in range(20)]

    def once(number):
        return run_ranks(
            2, faults.killed_at, 0.004 * number, number % 4 > 1, timeout=100,
            GRAFT_COLLECTIVES=ENGINES[number % 2], MASTER_PORT=str(ports[number]),
        )  # fmt: skip

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        for number, ranks in enumerate(pool.map(once, range(20))):
            assert ranks[1].error == "ended without a result", number
            assert ranks[0].error is None, ranks[0].error
            text, seconds = ranks[0].value
            assert "rank 1" in text, (number, text)
            assert seconds < 20, (number, text)


ENDS = """
    import signal
    from datetime import timedelta
    import torch.distributed as dist
    dist.init_process_group(timeout=timedelta(seconds=60))
    x = torch.ones(2**16, device=D)
    dist.all_reduce(x)
    x.cpu()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    message = dist.irecv(torch.zeros(3, device=D), 1)  # still waits when the program ends
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    x.cpu()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_lost_a_rank_ends_with_the_error(python, engine):
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
                   "GRAFT_COLLECTIVES": engine, "OMP_NUM_THREADS": "1"}  # fmt: skip

    def rank(number):
        return python(ENDS, timeout=100, RANK=str(number), LOCAL_RANK="0", **environment)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        left, killed = pool.map(rank, range(2))
    assert killed.code == -signal.SIGKILL
    assert left.code == 1, left.err
    assert "rank 1" in left.err


def test_a_rank_that_does_not_come_to_the_first_collective_is_named():
    text, _ = values(run_ranks(2, faults.without_a_first_collective, timeout=60))
    assert "rank 1 did not come within 3000 ms" in text


def test_a_late_failure_reaches_everybody_who_waits_for_the_results():
    ranks = values(run_ranks(2, faults.late_failures))
    for way in faults.WAYS:
        for found in ranks:
            first, again = found[way]
            assert "all_reduce of 3 float32" in first, (way, first)
            assert "all_reduce of 4 float32" in first, (way, first)
            assert "broken since an earlier failure" in again, (way, again)


def test_a_failure_that_nobody_waited_for_is_told_when_the_group_ends():
    for text in values(run_ranks(2, faults.failed_at_the_end)):
        assert "all_reduce of 3 float32" in text
        assert "all_reduce of 4 float32" in text


def test_debug_mode_names_both_sides_of_dtypes_and_of_the_order():
    for found in values(run_ranks(2, faults.mismatched, TORCH_DISTRIBUTED_DEBUG="DETAIL")):
        assert "Detected mismatch between collectives on ranks" in found["dtype"]
        assert re.search(r"[Ff]loat\b", found["dtype"])
        assert re.search(r"[Dd]ouble\b", found["dtype"])
        assert "ALLREDUCE" in found["order"]
        assert "BROADCAST" in found["order"]


@pytest.mark.any_driver
@pytest.mark.parametrize("engine", ENGINES)
def test_a_rank_without_memory_says_so_and_the_group_goes_on(engine):
    texts = values(run_ranks(2, faults.out_of_memory, GRAFT_COLLECTIVES=engine))
    assert texts[0] == ""
    assert "memory" in texts[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_forked_child_has_no_part_in_its_parents_group(engine):
    for text in values(run_ranks(2, faults.forked, GRAFT_COLLECTIVES=engine)):
        assert "forked subprocess" in text


@pytest.mark.any_driver
@pytest.mark.parametrize("engine", ENGINES)
def test_groups_end_and_begin_again(engine):
    assert values(run_ranks(2, faults.made_again, GRAFT_COLLECTIVES=engine)) == [6, 6]


@pytest.mark.any_driver
@pytest.mark.parametrize("engine", ENGINES)
def test_an_aborted_group_ends_what_waits(engine):
    collective, message, seconds = values(
        run_ranks(2, faults.aborted, GRAFT_COLLECTIVES=engine)
    )[0]  # fmt: skip
    assert "abort" in collective
    assert "abort" in message
    assert seconds < faults.TIMEOUT.total_seconds() / 2


def wait_for_both(folder, name):
    until = time.monotonic() + 100
    while not all((folder / f"{name} {rank}").is_symlink() or (folder / f"{name} {rank}").exists()
                  for rank in range(2)):  # fmt: skip
        if time.monotonic() > until:
            return
        time.sleep(0.02)


def cut_when_ready(folder, cut):
    wait_for_both(folder, "ready")
    cut()
    (folder / "cut").touch()


def ranks_whose_store_is_cut(folder, silent, timeout):
    """Their store is here, behind a relay that ends or falls silent when both are ready."""
    store = dist.TCPStore(
        "127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False
    )  # fmt: skip
    with Relay(store.port) as relay:
        cut = relay.silence if silent else relay.close
        thread = threading.Thread(target=cut_when_ready, args=(folder, cut))
        thread.start()
        ranks = run_ranks(
            2, faults.without_store, str(folder), timeout, timeout=100, MASTER_PORT=str(relay.port),
            TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0",
            GRAFT_COLLECTIVES="staged",
        )  # fmt: skip
        thread.join()
    return values(ranks)


@pytest.mark.any_driver
def test_a_store_that_goes_away_is_told_to_ranks_that_wait(tmp_path: Path):
    (text, seconds), _ = ranks_whose_store_is_cut(tmp_path, silent=False, timeout=30)
    assert "store does not answer" in text
    assert seconds < 20


def test_a_store_that_is_silent_does_not_keep_the_timeout_from_counting(tmp_path: Path):
    (text, seconds), _ = ranks_whose_store_is_cut(tmp_path, silent=True, timeout=5)
    assert "the group's store is silent" in text
    assert 4 < seconds < 30


def join_and_cut(folder):
    wait_for_both(folder, "process")
    processes = [int((folder / f"process {rank}").readlink().name) for rank in range(2)]
    network_hosts.join(processes)
    (folder / "joined").touch()
    cut_when_ready(folder, lambda: network_hosts.cut(processes))


def ranks_whose_network_is_cut(folder):
    """On two hosts where this user may make them; otherwise the store's connections alone."""
    if not network_hosts.possible():
        return ranks_whose_store_is_cut(folder, silent=True, timeout=5)
    thread = threading.Thread(target=join_and_cut, args=(folder,))
    thread.start()
    ranks = run_ranks(
        2, faults.on_hosts, str(folder), 5, timeout=100, MASTER_ADDR=network_hosts.ADDRESSES[0],
        GLOO_SOCKET_IFNAME=network_hosts.INTERFACE,
        RES_OPTIONS="timeout:1 attempts:1",  # no server of names is on their network
    )  # fmt: skip
    thread.join()
    return values(ranks)


def test_a_network_that_is_cut_in_the_middle_ends_at_the_timeout(tmp_path: Path):
    ranks = ranks_whose_network_is_cut(tmp_path)
    assert all(seconds < 30 for _, seconds in ranks)
    if network_hosts.possible():
        assert "rank 1 did not answer" in ranks[0][0]  # who holds the store can tell
        assert "the group's store is silent" in ranks[1][0]
    else:
        assert "the group's store is silent" in ranks[0][0]


@pytest.mark.parametrize("engine", ENGINES)
def test_tensors_of_the_wrong_device_are_told_with_both_devices(device, engine):
    ranks = run_ranks(2, faults.wrong_devices, GRAFT_HOST_DEVICES="2", GRAFT_COLLECTIVES=engine)
    for mixed, moved, sums in values(ranks):
        assert f"are on {device}:1 and {device}:0" in mixed
        if moved == "nothing was raised":  # through host memory any device goes
            assert sums == [4, 4, 2, 2]
        else:
            assert engine == "auto"
            assert "call set_device first" in moved
            assert sums == [4, 4, 1, 1]


def test_what_a_drivers_library_does_not_take_goes_through_host_memory(tmp_path: Path):
    """The worked example of docs/drivers/collectives.md, whose library has four dtypes."""
    built = tmp_path / "vendor.so"
    sources = [str(ROOT / "tests/drivers/vendor" / name) for name in ("driver.cpp", "vcl.cpp")]
    subprocess.run(
        ["c++", "-std=c++20", "-shared", "-fPIC", f"-I{ROOT}/include", *sources, "-ldl", "-o",
         str(built), f'-DGRAFT_BASE_DRIVER="{drivers.host()}"'], check=True,
    )  # fmt: skip
    ranks = run_ranks(
        2, faults.few_dtypes, GRAFT_DRIVER_PATH=str(built), GRAFT_DEVICES="vendor",
        GRAFT_COLLECTIVES="native",
    )  # fmt: skip
    for found in values(ranks):
        assert {name: text for name, text in found.items() if text} == {}


@pytest.mark.parametrize("order", ["host:0,tiny", "host:0,opencl:0", "opencl:0,host:0"])
def test_ranks_with_devices_of_two_drivers_train_together(tmp_path: Path, order: str):
    tiny = build_c(tmp_path / "tiny.so", (ROOT / "tests/drivers/tiny.c").read_text())
    ranks = values(
        run_ranks(2, faults.two_drivers, GRAFT_DRIVER_PATH=tiny, GRAFT_DEVICES=order,
                  OCL_ICD_VENDORS="")
    )  # fmt: skip
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.arange(12.0).reshape(4, 3).div(12)).square().mean().backward()
    optimizer.step()
    wanted = [value for p in model.parameters() for value in p.detach().flatten().tolist()]
    for found in ranks:
        assert_close(found, wanted * 2, rtol=1e-4, atol=1e-5)
