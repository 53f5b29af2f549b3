# python/torch_graft/process/simulation.py: many ranks in simulated time, all but one of them only thought of.
"""Runs a script as one rank of many: `python -m torch_graft simulate ranks=256,latency=5us train.py`.

The settings are those of GRAFT_HOST_SIMULATE, which the host driver reads (docs/use/simulation.md).
"""

from __future__ import annotations

import os
import runpy
import sys

VARIABLE = "GRAFT_HOST_SIMULATE"


def ranks(settings: str | None = None) -> int:
    """The number of simulated ranks; 0 where ranks are processes. None: of this process."""
    text = os.environ.get(VARIABLE, "") if settings is None else settings
    for item in text.split(","):
        key, _, value = item.partition("=")
        if key == "ranks" and value.isdecimal() and int(value) > 1:
            return int(value)
    return 0


def run(settings: str, script: str, arguments: list[str]) -> None:
    """Runs a script as rank 0 of the simulated ones; `init_process_group()` needs no arguments.

    REQUIRES: torch is not imported yet.
    """
    size = ranks(settings)
    if size == 0:
        raise SystemExit(f"simulate: '{settings}' has no ranks=N; give a number above 1")
    os.environ.update(
        {VARIABLE: settings, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    )  # fmt: skip
    from datetime import timedelta

    from torch.distributed import TCPStore

    # As under torchrun, the store is not rank 0's own: one of those waits for the other ranks.
    store = TCPStore(
        "127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60)
    )
    os.environ.update(
        {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
    )
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
