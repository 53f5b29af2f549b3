# conformance/tests/support/planted_calls.py: a device that is the CPU with faults which only odd arguments wake.
"""A plugin for the fuzz: five crashes, five errors not raised, five raised without need, two wrong values, a hang.

Each fault has a condition on the arguments, so that ordinary calls of its operator are right.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def _tensors(args: Any) -> list[torch.Tensor]:
    found = []
    for value in args:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(value)
    return found


def _empty(*args: Any) -> bool:
    return any(t.numel() == 0 for t in _tensors(args))


def _strided(*args: Any) -> bool:
    return any(t.layout == torch.strided and not t.is_contiguous() for t in _tensors(args))


def _odd_number(*args: Any) -> bool:
    return any(isinstance(a, float) and (a != a or abs(a) > 1e300) for a in args)


Condition = Callable[..., bool]
CRASHES: dict[str, Condition] = {
    "index_put": lambda x, indices, *rest: all(i is None for i in indices),
    "cumprod": _empty,
    "clamp": _odd_number,
    "roll": lambda x, shifts, *dims: isinstance(shifts, list | tuple) and len(shifts) == 0,
    "bmm": lambda a, b: a.dtype != b.dtype,
}
TAKES = ("gather", "diagonal", "logcumsumexp", "tril", "dot")  # what the CPU refuses
REFUSES: dict[str, Condition] = {
    "sinh": lambda x: x.dim() == 0,
    "flip": lambda x, dims: len(dims) == 0,
    "maximum": lambda a, b: a.dtype != b.dtype,
    "neg": _strided,
    "amax": lambda x, *rest: x.dtype == torch.bool,
}
WRONG: dict[str, Condition] = {"lgamma": _strided, "fmod": _empty}
HANGS: dict[str, Condition] = {"trace": lambda x: x.dtype == torch.bool}


def _mistaken(result: Any) -> Any:
    """The tensors of a result with another value, or another shape where there is none."""
    if isinstance(result, torch.Tensor):
        return result + 3 if result.numel() else result.unsqueeze(0)
    return result


class Planted(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        plain = not kwargs and not name.startswith("_")

        def woken(faults: dict[str, Condition]) -> bool:
            return plain and name in faults and faults[name](*args)

        if woken(CRASHES):
            os.kill(os.getpid(), signal.SIGSEGV)
        if woken(HANGS):
            time.sleep(3600)
        if woken(REFUSES):
            raise RuntimeError("this device cannot do that")
        try:
            result = func(*args, **kwargs)
        except Exception:
            if name in TAKES and plain and _tensors(args):
                return _tensors(args)[0].clone()
            raise
        return _mistaken(result) if woken(WRONG) else result


def on_device(cell: Any) -> Planted:
    return Planted()
