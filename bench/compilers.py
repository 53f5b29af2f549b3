"""Measures kernels of another compiler, or of other flags, beside those of the system's cc.

No pack is loaded and none is kept, so that each side compiles all it runs. Prints the time of a
first call, which compiles, and the ratio of later ones in interleaved pairs. Needs a cc. Without
--flags the other one is zig, from GRAFT_ZIG or `pip install torch-graft[compiler]`;
--flags=-O2 is cc with this behind the driver's own flags.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
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
ZIG = {**COMMON, "GRAFT_CC": "", "PATH": "/nonexistent"}
CC = {**COMMON, "GRAFT_CC": "cc"}
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


def with_flags(flags: str, folder: Path) -> dict[str, str]:
    """A side whose compiler is cc with more flags, which win over those before them."""
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec cc "$@" {flags}\n')
    compiler.chmod(0o755)
    return {**COMMON, "GRAFT_CC": str(compiler)}


def compare(name: str, variables: dict[str, str], pairs: int) -> None:
    device = default_device()
    print(
        f"| kernel | first call: {name} | cc | later calls: {name} | cc | {name} / cc | 95 % interval |"
    )
    print("|---|---|---|---|---|---|---|")
    with Side(device, variables) as other, Side(device, CC) as cc:
        for case in CASES:
            begun = [side.call(first, case) for side in (other, cc)]
            ours, theirs = interleave(pairs, partial(other.call, sample, case),
                                      partial(cc.call, sample, case))  # fmt: skip
            row = ratio_row(case, 1.0, ours, theirs)
            print(f"| {case} | {begun[0]:.0f} ms | {begun[1]:.0f} ms | {min(ours):.3f} ms | "
                  f"{min(theirs):.3f} ms | {row.value:.2f} | {row.low:.2f} - {row.high:.2f} |",
                  flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--flags", help="of cc, instead of zig")
    options = parser.parse_args()
    if options.flags:
        with tempfile.TemporaryDirectory() as folder:
            compare(options.flags, with_flags(options.flags, Path(folder)), options.pairs)
    elif "GRAFT_ZIG" in os.environ:
        compare("zig", ZIG, options.pairs)
    else:
        raise SystemExit("there is no zig: pip install torch-graft[compiler], or set GRAFT_ZIG")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
