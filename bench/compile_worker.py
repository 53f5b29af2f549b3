"""What runs in the process of one side of the compilers' table: compiles a case and times it."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch
from torch import nn

from compile_cases import CASES, Case
from record import synchronize
from timing import seconds_per_call

SAMPLE_SECONDS = 0.05
_work: dict[str, Any] = {}


def wrapped(kind: str, case: Case, model: nn.Module) -> nn.Module:
    """model as this side runs it."""
    if "eager" in kind:
        return model
    if kind == "optimize":
        import torch_graft

        mode = "training" if case.training else "inference"
        return torch_graft.optimize(model, mode=mode, dynamic=case.dynamic)
    backend = "graft" if kind == "graft compile" else "inductor"
    if kind == "frozen":
        import torch._inductor.config as inductor

        inductor.freezing = True
    return torch.compile(model, backend=backend, dynamic=case.dynamic)  # type: ignore[return-value]


def prepare(device: str, kind: str, name: str, threads: int) -> dict[str, float]:
    """Compiles a case. Returns the seconds of its first call, of the back end, and what was built."""
    torch.set_num_threads(threads)
    case, ours = CASES[name], kind in ("graft compile", "optimize")
    torch.ones(1, device=device).add(1)
    call = case.make(device, lambda model: wrapped(kind, case, model))
    start = time.perf_counter()
    call()
    synchronize(device)
    found = {"first": time.perf_counter() - start}
    for _ in range(3):
        call()
    synchronize(device)
    if "eager" not in kind:
        found |= built() if ours else {"back end": inductor_seconds()}
    _work.update(call=call, count=1)
    took = sample(device)
    _work["count"] = max(1, int(SAMPLE_SECONDS / took))
    return found | (costs(device, call) if device != "cpu" else {})


def inductor_seconds() -> float:
    from torch._dynamo.utils import compilation_time_metrics

    return sum(
        compilation_time_metrics["compile_fx_inner"]
    )  # a KeyError says that torch renamed it


def built() -> dict[str, float]:
    """The back end's seconds, how many graphs there are, how many were refused, and how many nodes
    stayed eager."""
    from torch_graft.compiler import reports

    counts = [one.counts() for one in reports()]
    eager = sum(sum(one.eager.values()) for one in counts if one is not None)
    refused = sum(not one.compiled for one in reports())
    seconds = sum(one.seconds for one in reports())
    return {"back end": seconds, "graphs": len(counts), "refused": refused, "eager nodes": eager}


def costs(device: str, call: Any) -> dict[str, float]:
    """Launches (a graph is one), kernels (also those inside of graphs) and the peak of memory of one
    warm call."""
    module = torch.get_device_module(device)
    gc.collect()  # tensors in cycles of objects that compiling left
    torch.accelerator.reset_peak_memory_stats()
    before = module.statistics()
    call()
    synchronize(device)
    now = module.statistics()
    made = {key: now[key] - before[key] for key in ("launches", "graphs", "launches_in_graphs")}
    return {"launches": made["launches"] + made["graphs"],
            "kernels": made["launches"] + made["launches_in_graphs"],
            "peak": torch.accelerator.max_memory_allocated()}  # fmt: skip


def sample(device: str) -> float:
    """Seconds per call, the last synchronisation included."""
    return seconds_per_call(device, _work["call"], _work["count"])
