"""Two hosts in one machine: network namespaces of two processes, joined by a cable that is cut."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

ADDRESSES = ["10.77.0.1", "10.77.0.2"]
INTERFACE = "g0"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def possible() -> bool:
    """Whether this user may make them, and has the tools."""
    tools = all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip"))
    return (
        tools and subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0
    )


def enter() -> None:
    """Gives this process a network of its own, with nobody else in it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def join(processes: list[int]) -> None:
    """Lays a cable between the networks of two processes that have entered theirs."""
    one, other = map(str, processes)
    _run("ip", "link", "add", INTERFACE, "netns", one,
         "type", "veth", "peer", "name", INTERFACE, "netns", other)  # fmt: skip
    for process, address in zip(processes, ADDRESSES, strict=True):
        _inside(process, "addr", "add", f"{address}/24", "dev", INTERFACE)
        _inside(process, "link", "set", "lo", "up")
        _inside(process, "link", "set", INTERFACE, "up")


def cut(processes: list[int]) -> None:
    """Nothing arrives any more, and no connection ends."""
    _inside(processes[1], "link", "set", INTERFACE, "down")


def _inside(process: int, *arguments: str) -> None:
    _run("nsenter", "--target", str(process), "--net", "ip", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
