# conformance/tests/support/planted.py: a device that is the CPU with ten wrong kernels, two crashes and one hang.
"""A plugin for --plugin: while the device's side of a cell runs, it stands in for its kernels."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# ATen operator -> the entry that is made of it.
WRONG = {
    "acosh": "acosh", "erfinv": "erfinv", "special_i1e": "special.i1e", "special_i1": "special.i1",
    "special_ndtri": "special.ndtri", "heaviside": "heaviside", "hypot": "hypot",
    "logaddexp2": "logaddexp2", "nextafter": "nextafter", "special_erfcx": "special.erfcx",
}  # fmt: skip
CRASHING = {"frac": "frac", "histc": "histc"}
HANGING = {"kthvalue": "kthvalue"}
SIGNALS = {"frac": signal.SIGSEGV, "histc": signal.SIGABRT}


class Planted(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in SIGNALS:
            print(f"{name} takes the process with it", flush=True)
            os.kill(os.getpid(), SIGNALS[name])
        if name in HANGING:
            time.sleep(3600)
        result = func(*args, **(kwargs or {}))
        if name in WRONG and isinstance(result, torch.Tensor) and result.is_floating_point():
            return result + 0.01 * (1 + result.abs())
        return result


def on_device(cell: Any) -> Planted:
    return Planted()
