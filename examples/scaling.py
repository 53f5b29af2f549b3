"""Draws the time of a training step against the number of ranks and the speed of their links, in simulated time.

python examples/scaling.py --ranks 2 8 64 256 --bandwidths 10G 25G 100G
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STRATEGIES = {"ddp": "DistributedDataParallel", "fsdp2": "FSDP2"}
WARM = 2  # steps that set up what the first ones do


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a step: of one rank alone, and by strategy and number of ranks."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    device = torch.accelerator.current_accelerator()

    def network() -> nn.Sequential:
        with torch.device(device):
            return nn.Sequential(
                *(
                    nn.Sequential(nn.Linear(options.width, options.width), nn.ReLU())
                    for _ in range(options.layers)
                )
            )

    def sharded() -> nn.Module:
        model = network()
        for layer in model:
            fully_shard(layer)
        return fully_shard(model)

    def step_time(model: nn.Module) -> float:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        inputs = torch.zeros(options.batch, options.width, device=device)
        start, end = (torch.Event(device, enable_timing=True) for _ in range(2))
        for step in range(WARM + 1):
            if step == WARM:
                start.record()
            optimizer.zero_grad()
            model(inputs).sum().backward()
            optimizer.step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def on_ranks(size: int, make: Callable[[], nn.Module]) -> float:
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=size)
        try:
            return step_time(make())
        finally:
            dist.destroy_process_group()

    found: dict[str, Any] = {"compute": step_time(network())}
    makers = {"ddp": lambda: DistributedDataParallel(network()), "fsdp2": sharded}
    for name, make in makers.items():
        found[name] = {size: on_ranks(size, make) for size in options.ranks}
    return found


def measure_apart(bandwidth: str, options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own: the host driver reads its settings once."""
    settings = f"ranks={max(options.ranks)},bandwidth={bandwidth},compute=skip"
    if options.settings:
        settings += "," + options.settings
    ran = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--measure"],
        env={**os.environ, "GRAFT_HOST_SIMULATE": settings}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if ran.returncode != 0:
        raise SystemExit(f"the simulation with {settings} failed")
    return json.loads(ran.stdout.splitlines()[-1])


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    for panel, (strategy, title) in zip(panels, STRATEGIES.items(), strict=True):
        for bandwidth, times in found.items():
            sizes = [int(size) for size in times[strategy]]
            panel.plot(
                sizes, list(times[strategy].values()), "o-", label=f"links of {bandwidth}B/s"
            )
        alone = next(iter(found.values()))["compute"]
        panel.axhline(alone, color="#888888", linestyle="--", label="one rank alone")
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.set_title(title)
        panel.set_xlabel("ranks")
        panel.grid(which="both", linewidth=0.3)
    panels[0].set_ylim(bottom=0)  # of both, once both have their lines
    panels[0].set_ylabel("simulated time of a step, ms")
    panels[1].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 8, 32, 64, 128, 256])
    parser.add_argument("--bandwidths", nargs="+", default=["10G", "25G", "100G"])
    parser.add_argument("--settings", default="", help="more for GRAFT_HOST_SIMULATE: node=8,...")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=2048, help="rows of a rank's input")
    parser.add_argument("--out", type=Path, default=Path("demo"))
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options)))
        return
    found = {bandwidth: measure_apart(bandwidth, options) for bandwidth in options.bandwidths}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scaling.json").write_text(json.dumps(found, indent=1))
    draw(found, options.out / "scaling.png")
    for bandwidth, times in found.items():
        for strategy in STRATEGIES:
            steps = ", ".join(f"{size}: {ms:.3f}" for size, ms in times[strategy].items())
            print(f"{strategy}, {bandwidth}B/s, ms per step by ranks: {steps}")
    print(f"wrote {options.out / 'scaling.png'}")


if __name__ == "__main__":
    main()
