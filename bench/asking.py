"""What asking a vendor for its kernels costs: tiny additions on drivers that take no call.

    python bench/asking.py [pairs]

The host's driver offers no graft.ops, or one that knows no operator, or one that knows every
operator and refuses each call (tests/drivers/limited.cpp). Processes take turns; each tells the least
time of a call over many batches. Prints a row of docs/measurements/asking.md for each driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from torch_graft import drivers

ROOT = Path(__file__).resolve().parents[1]
DRIVERS = {
    "none": "without `graft.ops`",
    "knows_none": "knows no operator",
    "plans_none": "refuses each call",
}

TINY = """
import time, torch
torch.set_num_threads(1)
x, out = torch.ones(1, device="graft"), torch.empty(1, device="graft")
add, least = torch.add, 1e9
for _ in range(800):
    start = time.perf_counter()
    for _ in range(500):
        add(x, x, out=out)
    least = min(least, (time.perf_counter() - start) / 500)
    torch.graft.synchronize()
assert out.item() == 2
print(least * 1e9)
"""


def build(folder: str) -> str:
    library = f"{folder}/limited.so"
    source = str(ROOT / "tests/drivers/limited.cpp")
    command = ["c++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{ROOT}/include", f"-I{ROOT}"]
    subprocess.run([*command, source, "-o", library, "-ldl"], check=True)
    return library


def least(**settings: str) -> float:
    """The least time of a tiny addition of torch in a new process, in nanoseconds."""
    command, environment = [sys.executable, "-c", TINY], os.environ | settings
    ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(ran.stdout.splitlines()[-1])


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times: dict[str, list[float]] = {limit: [] for limit in DRIVERS}
    with tempfile.TemporaryDirectory() as folder:
        paths = {"GRAFT_DRIVER_PATH": build(folder), "GRAFT_LIMITED_DRIVER": str(drivers.host())}
        for _ in range(turns):
            for limit in DRIVERS:
                times[limit].append(least(**paths, GRAFT_DEVICES="limited", GRAFT_LIMIT=limit))
    print("| driver | least | median of the processes | more than without |\n|---|---|---|---|")
    for limit, name in DRIVERS.items():
        middle = median(times[limit])
        more = middle - median(times["none"])
        print(f"| {name} | {min(times[limit]):.0f} ns | {middle:.0f} ns | {more:.0f} ns |")


if __name__ == "__main__":
    main()
