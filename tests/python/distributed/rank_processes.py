"""Runs a function on every rank of a new process group, each rank in a process of its own."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import random
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox import NAME

# A fork server imports torch once for all ranks; no device is used in it.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "torch.distributed"])


@dataclass
class Rank:
    """How one rank ended: what its function returned, or the text of what it raised."""

    value: Any = None
    error: str | None = None
    exit_code: int | None = None


# Below the ports that the system gives to whoever asks for any: what is free stays free until it is
# used. Tests that run at once (pytest-xdist) take different ones.
_STARTS = range(10_000, 32_000, 64)
_ports = itertools.cycle(random.SystemRandom().sample(_STARTS, len(_STARTS)))


def free_port() -> int:
    """A port of this machine on which nobody listens, and that was not returned lately."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    while True:
        port = next(_ports) + worker
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def run_ranks(
    size: int,
    function: Callable[..., Any],
    *arguments: Any,
    timeout: float = 150,
    **environment: str,
) -> list[Rank]:
    """Calls function(rank, *arguments) on each rank; environment is set before torch is used.

    Ranks that have not ended after timeout seconds are killed, and their error says so.
    """
    shared = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size),
        "DEVICE": NAME, **environment,
    }  # fmt: skip
    pipes, processes = [], []
    for rank in range(size):
        mine, theirs = _CONTEXT.Pipe()
        # Every process has simulated devices of its own, and takes its first one.
        own = {**shared, "RANK": str(rank), "LOCAL_RANK": "0"}
        process = _CONTEXT.Process(target=_enter, args=(theirs, own, function, rank, arguments))
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    deadline = time.monotonic() + timeout
    ranks = [_answer(pipe, deadline) for pipe in pipes]
    for pipe in pipes:  # rank 0 holds the store: no rank ends before all have answered
        with contextlib.suppress(OSError):
            pipe.send_bytes(b"end")
    for rank, process in zip(ranks, processes, strict=True):
        _await_end(rank, process, deadline)
    return ranks


def values(ranks: list[Rank]) -> list[Any]:
    """What the ranks returned; fails with the text of those that raised."""
    errors = {number: rank.error for number, rank in enumerate(ranks) if rank.error}
    assert not errors, "\n".join(f"rank {number}: {text}" for number, text in errors.items())
    return [rank.value for rank in ranks]


def _answer(pipe: Any, deadline: float) -> Rank:
    rank = Rank()
    try:
        if pipe.poll(max(0.0, deadline - time.monotonic())):
            rank.value, rank.error = pickle.loads(pipe.recv_bytes())
        else:
            rank.error = "did not end in time"
    except (EOFError, ConnectionError):
        rank.error = "ended without a result"
    return rank


def _await_end(rank: Rank, process: Any, deadline: float) -> None:
    process.join(max(1.0, deadline - time.monotonic()))
    if process.is_alive():
        rank.error = rank.error or "did not end in time"
        process.kill()
        process.join()
    rank.exit_code = process.exitcode


def _enter(
    pipe: Any, environment: dict[str, str], function: Callable[..., Any], rank: int, arguments: Any
) -> None:
    os.environ.update(environment)
    import torch

    torch.set_num_threads(1)
    torch.distributed.set_debug_level_from_env()
    try:
        answer = (function(rank, *arguments), None)
    except BaseException:
        answer = (None, traceback.format_exc())
    pipe.send_bytes(pickle.dumps(answer))
    pipe.poll(100)
    pipe.close()
    if torch.distributed.is_initialized() and answer[1] is None:
        torch.distributed.destroy_process_group()
