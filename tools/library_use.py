# tools/library_use.py: one main use of a library, on one device, in a process of its own; for library_runs.py.
"""Usage: tools/library_use.py tests/libraries/FOLDER/NAME.py DEVICE RESULT

Calls the file's use(device) and writes what it returned, as tensors of the CPU by name, with what fell back, what the device
computed with, and seconds.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import numbers
import os
import runpy
import sys
import time
from collections.abc import Iterator
from typing import Any

# The folder of this file has names of libraries.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]

import torch  # noqa: E402


def leaves(found: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors and numbers in nested dicts and lists, each with its place."""
    if isinstance(found, torch.Tensor):
        yield name, found.detach().cpu()
    elif isinstance(found, bool | numbers.Number):
        yield name, torch.tensor(found)
    elif isinstance(found, dict):
        for key, one in found.items():
            yield from leaves(one, f"{name}.{key}" if name else str(key))
    elif isinstance(found, list | tuple):
        for key, one in enumerate(found):
            yield from leaves(one, f"{name}[{key}]")
    else:
        raise TypeError(
            f"{name}: a tensor, number, dict or list is expected, not {type(found).__name__}"
        )


def find_apart(script: str) -> None:
    """Lets what is about torchaudio find it: it lies apart (tools/libraries)."""
    if os.path.splitext(os.path.basename(script))[0] in ("torchaudio", "speechbrain"):
        sys.path.append(os.path.join(sys.prefix, "apart"))


def define_torchvision() -> Any:
    """The schemas without which torchvision does not import beside a torch that its C++ operators were not built for."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def main(script: str, device: str, result: str) -> None:
    find_apart(script)
    kept = define_torchvision()
    torch.manual_seed(0)
    use = runpy.run_path(script)["use"]
    module = None if device == "cpu" else torch.get_device_module(device)
    if module is not None:
        module.fallback.reset()
        module.reset_peak_memory_stats()
    began = time.monotonic()
    values = dict(leaves(use(device)))
    seconds = time.monotonic() - began
    fallbacks = {} if module is None else module.fallback.counts()
    torch.save(
        {
            "values": values,
            "seconds": seconds,
            "fallbacks": {name: count.calls for name, count in fallbacks.items()},
            "bytes": 0 if module is None else module.max_memory_allocated(),
        },
        result,
    )
    del kept


if __name__ == "__main__":
    main(*sys.argv[1:])
