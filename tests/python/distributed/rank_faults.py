"""What ranks do in the tests of faults; see distributed/test_faults.py."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.testing import assert_close

import network_hosts
from collective_checks import TIMEOUT, Check, outcomes

D = os.environ.get("DEVICE", "graft")
WAYS = ["work", "future", "event", "another stream"]


def failure_of(action: Callable[[], Any]) -> str:
    try:
        action()
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def killed_at(rank: int, moment: float, asynchronous: bool) -> tuple[str, float]:
    """Rank 1 is killed some time into a row of collectives; what the other sees, and how late."""
    dist.init_process_group(timeout=TIMEOUT)
    tensor = torch.zeros(2**17, device=D)
    dist.all_reduce(tensor)
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:

        def end() -> None:
            time.sleep(moment)
            store.set("ended", str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=end, daemon=True).start()

    def collect() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            work = dist.all_reduce(tensor, async_op=asynchronous)
            if work is not None:
                work.wait()
            tensor.sum().item()

    text = failure_of(collect)
    return text, time.time() - float(store.get("ended"))


def _wait(way: str, tensor: torch.Tensor, group: Any) -> None:
    work = dist.all_reduce(tensor, group=group, async_op=True)
    if way == "work":
        work.wait()
        tensor.cpu()
    elif way == "future":  # as DDP does
        work.get_future().wait()
        tensor.sum().item()
    elif way == "event":
        work.wait()
        event = torch.Event(D)
        event.record()
        event.synchronize()
    else:
        side = torch.Stream(device=D)
        with side:
            work.wait()
            doubled = tensor * 2
        torch.accelerator.current_stream().wait_stream(side)
        doubled.sum().item()


def late_failures(rank: int) -> dict[str, tuple[str, str]]:
    """The ranks' tensors differ in size, which the driver's collectives tell when they run."""
    dist.init_process_group(timeout=TIMEOUT)
    found = {}
    for way in WAYS:
        group = dist.new_group(timeout=TIMEOUT)
        dist.all_reduce(torch.ones(1, device=D), group=group)
        first = failure_of(lambda: _wait(way, torch.ones(3 + rank, device=D), group))  # noqa: B023
        again = failure_of(lambda: dist.all_reduce(torch.ones(1, device=D), group=group))  # noqa: B023
        found[way] = first, again
        dist.barrier()
    return found


def failed_at_the_end(rank: int) -> str:
    """The last collective fails, and nobody waits for it."""
    dist.init_process_group(timeout=TIMEOUT)
    dist.all_reduce(torch.ones(1, device=D))
    dist.all_reduce(torch.ones(3 + rank, device=D), async_op=True)
    return failure_of(dist.destroy_process_group)


def mismatched(rank: int) -> dict[str, str]:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL: what differs between the ranks, one thing at a time."""
    dist.init_process_group(timeout=TIMEOUT)
    dtype = torch.float64 if rank else torch.float32
    ones = torch.ones(3, device=D)
    found = {
        "dtype": failure_of(lambda: dist.all_reduce(ones.to(dtype))),
        "order": failure_of(lambda: dist.broadcast(ones, 0) if rank else dist.all_reduce(ones)),
    }
    dist.all_reduce(ones)  # the ranks are in step again
    assert_close(ones.cpu(), torch.full((3,), 2.0))
    return found


def out_of_memory(rank: int) -> str:
    """Rank 1 has no memory for its contiguous copy; when it has, the others go on with it."""
    module = torch.get_device_module(D)
    dist.init_process_group(timeout=TIMEOUT)
    tensor = torch.ones(4096, 1024, device=D)
    dist.all_reduce(torch.ones(1, device=D))
    text = ""
    if rank == 1:
        module.empty_cache()
        limit = (module.memory_reserved() + (1 << 20)) / module.mem_get_info()[1]
        module.set_per_process_memory_fraction(limit)
        try:
            dist.all_reduce(tensor.t())
        except torch.OutOfMemoryError as error:
            text = str(error)
        module.set_per_process_memory_fraction(1.0)
    dist.all_reduce(tensor.t())
    assert_close(tensor.cpu(), torch.full((4096, 1024), 2.0))
    return text


def forked(rank: int) -> str:
    """A child of a rank is told that it has no part in the group; the rank goes on."""
    warnings.simplefilter("ignore")
    dist.init_process_group(timeout=TIMEOUT)
    tensor = torch.ones(3, device=D)
    dist.all_reduce(tensor)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os.write(writing, failure_of(lambda: dist.all_reduce(tensor)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    dist.all_reduce(tensor)
    assert_close(tensor.cpu(), torch.full((3,), 4.0))
    return text


_stores: list[dist.Store] = []


def made_again(rank: int) -> int:
    """Groups that end and begin again in one process; sums of all rounds."""
    master = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*master, 2, is_master=rank == 0, timeout=TIMEOUT)
    total = 0
    for round_ in range(3):
        dist.init_process_group(
            store=dist.PrefixStore(str(round_), store), rank=rank, world_size=2, timeout=TIMEOUT
        )
        tensor = torch.ones(3, device=D)
        dist.all_reduce(tensor)
        total += int(tensor.cpu()[0])
        dist.all_reduce(tensor, async_op=True)  # under way while the group ends
        dist.destroy_process_group()
    _stores.append(store)  # rank 0 serves it: the others may still ask
    return total


def without_a_first_collective(rank: int) -> str:
    """Rank 1 makes the group and calls nothing."""
    dist.init_process_group(timeout=timedelta(seconds=3))
    store = dist.distributed_c10d._get_default_store()
    text = ""
    if rank == 0:
        text = failure_of(lambda: dist.all_reduce(torch.ones(3, device=D)))
        store.set("failed", "1")
    store.wait(["failed"], timedelta(seconds=30))
    return text


def aborted(rank: int) -> tuple[str, str, float]:
    """Rank 0 aborts its group while it waits for a collective and a message that never come."""
    dist.init_process_group(timeout=TIMEOUT)
    store = dist.distributed_c10d._get_default_store()
    tensor = torch.ones(3, device=D)
    dist.all_reduce(tensor)
    if rank == 1:
        store.wait(["aborted"], timedelta(seconds=60))
        return "", "", 0.0
    message = dist.irecv(torch.zeros(3, device=D), 1)
    work = dist.all_reduce(tensor, async_op=True)
    backend = dist.group.WORLD._get_backend(torch.device(D))
    threading.Timer(0.3, backend.abort).start()
    began = time.monotonic()

    def wait() -> None:
        work.wait()
        tensor.cpu()

    texts = failure_of(wait), failure_of(message.wait)
    seconds = time.monotonic() - began
    store.set("aborted", "1")
    return *texts, seconds


def _await(file: Path) -> None:
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, file
        time.sleep(0.02)


def without_store(rank: int, folder: str, timeout: float) -> tuple[str, float]:
    """Rank 0 waits for rank 1 in a collective while the store is cut off from both."""
    here = Path(folder)
    dist.init_process_group(timeout=timedelta(seconds=timeout))
    dist.all_reduce(torch.ones(3, device=D))
    (here / f"ready {rank}").touch()
    _await(here / "cut")
    began = time.monotonic()
    text = ""
    if rank == 0:
        text = failure_of(lambda: dist.all_reduce(torch.ones(3, device=D)))
        (here / "failed").touch()
    _await(here / "failed")
    return text, time.monotonic() - began


def on_hosts(rank: int, folder: str, timeout: float) -> tuple[str, float]:
    """Ranks of two networks, whose cable is cut between two collectives."""
    here = Path(folder)
    network_hosts.enter()
    (here / f"process {rank}").symlink_to(str(os.getpid()))
    _await(here / "joined")
    dist.init_process_group(timeout=timedelta(seconds=timeout))
    tensor = torch.ones(3, device=D)
    dist.all_reduce(tensor)
    assert_close(tensor.cpu(), torch.full((3,), 2.0))
    (here / f"ready {rank}").touch()
    _await(here / "cut")
    began = time.monotonic()
    return failure_of(lambda: dist.all_reduce(tensor)), time.monotonic() - began


def wrong_devices(rank: int) -> tuple[str, str, list[float]]:
    """Tensors of two devices in one collective, and a group that changes its device."""
    dist.init_process_group(timeout=TIMEOUT)
    first, second = torch.ones(2, device=f"{D}:0"), torch.ones(2, device=f"{D}:1")
    dist.all_reduce(first)
    mixed = failure_of(lambda: dist.all_gather([first, first.clone()], second))
    moved = failure_of(lambda: dist.all_reduce(second))
    dist.all_reduce(first)
    return mixed, moved, [*first.tolist(), *second.tolist()]


def few_dtypes(rank: int) -> dict[str, str | None]:
    """Collectives of a library that knows float32, and neither int8 nor plain bytes."""
    dist.init_process_group(timeout=TIMEOUT)
    return outcomes({
        f"{name} of {dtype}, async {asynchronous}": getattr(Check(rank, 2, dtype, asynchronous), name)
        for name in ("all_reduce", "reduce", "reduce_scatter_tensor", "all_gather", "all_to_all")
        for dtype in (torch.float32, torch.int8)
        for asynchronous in (False, True)
    })  # fmt: skip


def two_drivers(rank: int) -> list[float]:
    """Each rank trains on a device of another driver, then both on that of the second one."""
    dist.init_process_group(timeout=TIMEOUT)
    assert torch.accelerator.device_count() == 2
    found = []
    for index in (rank, 1):
        torch.accelerator.set_device_index(index)
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1).to(f"{D}:{index}")
        wrapped = torch.nn.parallel.DistributedDataParallel(model, process_group=dist.new_group())
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        rows = torch.arange(12.0).reshape(4, 3).div(12)[rank::2].to(f"{D}:{index}")
        wrapped(rows).square().mean().backward()
        optimizer.step()
        found += [
            value for p in model.parameters() for value in p.detach().cpu().flatten().tolist()
        ]
    return found
