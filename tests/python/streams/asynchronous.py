"""What a program sees of a device that runs behind it: events, copies, waits; prints it as JSON."""

import json
import os
import threading
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

D = os.environ["DEVICE"]


def busy(where, n):
    x = torch.randn(900, 900, device=where)
    for _ in range(n):
        x = x @ x / 30
    return x


found = {}
busy(D, 1)
torch.accelerator.synchronize()
here, there = torch.accelerator.current_stream(0), torch.accelerator.current_stream(1)

event = torch.Event(D)
unmarked = event.query()
busy(D, 12)
event.record()
pending = event.query()
event.synchronize()
found["event"] = [unmarked, pending, event.query()]
here.synchronize()

idle = []
for _ in range(20):
    busy(D, 1)
    event.record()
    event.synchronize()
    idle.append(here.query())
found["idle after its last event"] = all(idle)

busy(f"{D}:1", 12)
before = [here.query(), there.query()]
there.synchronize()
found["two devices"] = [before, [here.query(), there.query()]]

busy(D, 12)
here.record_event(event)
there.wait_event(event)
there.synchronize()
found["wait across devices"] = [event.query(), there.query()]

for to, pinned in ((D, True), ("cpu", False)):
    for non_blocking in (True, False):
        source = torch.randn(100_000, device="cpu" if pinned else D)
        source = source.pin_memory() if pinned else source
        torch.accelerator.synchronize()
        busy(D, 12)
        moved = source.to(to, non_blocking=non_blocking)
        done = here.query()
        torch.accelerator.synchronize()
        right = torch.equal(moved.cpu(), source.cpu())
        found[f"to {'cpu' if to == 'cpu' else 'device'} {non_blocking}"] = [
            done,
            right,
            moved.is_pinned(),
        ]

side = torch.Stream(D)
host, back = torch.ones(500_000).pin_memory(), torch.empty(500_000, pin_memory=True)
target = torch.zeros(500_000, device=D)
torch.accelerator.synchronize()
busy(D, 40)
with side:
    target.copy_(host, non_blocking=True)
    back.copy_(target, non_blocking=True)
side.synchronize()
found["overlap"] = [not here.query(), bool((back == 1).all())]
torch.accelerator.synchronize()


def spans_of_a_run():
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities) as profiled:
        busy(D, 20)
        with side:
            for _ in range(8):
                target.copy_(host, non_blocking=True)
        torch.accelerator.synchronize()
    profiled.export_chrome_trace(os.environ["TRACE"])
    events = [
        e for e in json.loads(Path(os.environ["TRACE"]).read_text())["traceEvents"] if "dur" in e
    ]
    return [
        [(e["ts"], e["ts"] + e["dur"], e["args"]["stream"]) for e in events if e.get("cat") == kind]
        for kind in ("kernel", "gpu_memcpy")
    ]


traced = []
for _ in range(10):  # a busy machine may give the copies no turn before the kernels are done
    kernels, copies = spans_of_a_run()
    overlaps = sum(
        start < until and begin < end and one != other
        for start, end, one in copies
        for begin, until, other in kernels
    )
    traced.append([len(kernels), len(copies), overlaps])
    if overlaps:
        break
found["overlap in the trace"] = traced

busy(D, 40)
left = threading.Event()
waiter = threading.Thread(target=lambda: (here.synchronize(), left.set()))
waiter.start()
steps = 0
while not left.is_set():
    time.sleep(0.002)
    steps += 1
waiter.join()
found["steps beside a wait"] = steps
print(json.dumps(found))
