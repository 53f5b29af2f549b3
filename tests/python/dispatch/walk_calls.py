"""Makes one of the calls of docs/develop/walks.md, the second time under tests/drivers/tracing.cpp.

Prints, as JSON, the functions of Graft's Python between the call and Graft's C++, and the thread.
"""

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import torch_graft

D = os.environ["DEVICE"]
HOME = os.path.dirname(torch_graft.__file__)
CALL, TRACE, DRIVER = (os.environ[key] for key in ("WALK", "TRACE", "GRAFT_DRIVER_PATH"))

x, y = (torch.ones(512, 4096, device=D) for _ in range(2))
compiled = torch.compile(lambda x, y: torch.relu(x + y).sum(0) * 2)
calls: dict[str, Callable[[], Any]] = {
    "Eager add": lambda: torch.add(x, y),
    "Compiled call": lambda: compiled(x, y),
    "Allocation": lambda: torch.empty(64 << 20, dtype=torch.uint8, device=D),
    "All-reduce": lambda: dist.all_reduce(x),
}
if CALL == "All-reduce":
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)

python: list[list[str]] = []


def watch(frame: Any, event: str, function: Any) -> None:
    """Notes who calls a compiled graph."""
    if event != "c_call" or getattr(function, "__name__", "") != "run":
        return
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(HOME):
            python.insert(0, [code.co_name, os.path.relpath(code.co_filename, HOME)])
        frame = frame.f_back


for _ in range(2):
    calls[CALL]()
sys.setprofile(watch)
calls[CALL]()
sys.setprofile(None)
torch.get_device_module(D).synchronize()
torch.get_device_module(D).empty_cache()
tracer = ctypes.CDLL(DRIVER)
tracer.graft_trace_start(TRACE.encode())
calls[CALL]()
tracer.graft_trace_stop()
if CALL == "All-reduce":
    dist.destroy_process_group()
print(json.dumps([python, threading.get_native_id()]))
