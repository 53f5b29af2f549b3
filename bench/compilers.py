"""Measures kernels that zig compiled beside the same ones that the system's cc compiled.

No pack is loaded and none is kept, so that each side compiles all it runs. Prints the time of a
first call, which compiles, and the ratio of later ones in interleaved pairs. Needs a cc, and a zig
in GRAFT_ZIG or from `pip install torch-graft[compiler]`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import torch  # noqa: E402
from torch import nn  # noqa: E402

from pairs import interleave, ratio_row  # noqa: E402
from record import Side, default_device  # noqa: E402

F = nn.functional
# GRAFT_HOST_ISA names no pack; without the library, products are generated kernels, too.
COMMON = {"GRAFT_HOST_ISA": "none", "GRAFT_HOST_LIBRARY": "0", "GRAFT_CACHE_LIMIT": "0"}
SIDES = {"zig": {**COMMON, "GRAFT_CC": "", "PATH": "/nonexistent"},
         "cc": {**COMMON, "GRAFT_CC": "cc"}}  # fmt: skip
_x: dict[str, torch.Tensor] = {}


def _square() -> torch.Tensor:
    return _x["square"]


CASES: dict[str, Callable[[], object]] = {
    "add 1024²": lambda: _square().add(_square()),
    "gelu 1024²": lambda: F.gelu(_square()),
    "sum of rows 1024²": lambda: _square().sum(1),
    "softmax 1024²": lambda: _square().softmax(1),
    "layer norm 1024²": lambda: F.layer_norm(_square(), (1024,)),
    "matmul 512": lambda: _x["factor"] @ _x["factor"],
    "cumulative sum 1024²": lambda: _square().cumsum(1),
    "sort 1024²": lambda: _square().sort(1),
}


def first(device: str, name: str) -> float:
    """Milliseconds of a call that compiles."""
    torch.manual_seed(0)
    _x["square"] = torch.randn(1024, 1024).to(device)
    _x["factor"] = torch.randn(512, 512).to(device)
    return sample(device, name)


def sample(_: str, name: str) -> float:
    """Milliseconds of a call."""
    torch.graft.synchronize()
    begin = time.perf_counter()
    CASES[name]()
    torch.graft.synchronize()
    return (time.perf_counter() - begin) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    options = parser.parse_args()
    if "GRAFT_ZIG" not in os.environ:
        raise SystemExit("there is no zig: pip install torch-graft[compiler], or set GRAFT_ZIG")
    device = default_device()
    print("| kernel | first call: zig | cc | later calls: zig | cc | zig / cc | 95 % interval |")
    print("|---|---|---|---|---|---|---|")
    with Side(device, SIDES["zig"]) as zig, Side(device, SIDES["cc"]) as cc:
        for name in CASES:
            begun = [side.call(first, name) for side in (zig, cc)]
            ours, theirs = interleave(options.pairs, partial(zig.call, sample, name),
                                      partial(cc.call, sample, name))  # fmt: skip
            row = ratio_row(name, 1.0, ours, theirs)
            print(f"| {name} | {begun[0]:.0f} ms | {begun[1]:.0f} ms | {min(ours):.3f} ms | "
                  f"{min(theirs):.3f} ms | {row.value:.2f} | {row.low:.2f} - {row.high:.2f} |",
                  flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
