"""Profiles a few training steps and draws what each stream and the host did."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {
    "kernel": "#3b6fb6", "gpu_memcpy": "#d9822b", "gpu_memset": "#8d6cab", "gpu_user_annotation": "#dddddd",
    "privateuse1_runtime": "#5f9e6e", "cpu_op": "#9ecae1",
}  # fmt: skip
NAMES = {
    "kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "fills", "gpu_user_annotation": "marks and waits",
    "privateuse1_runtime": "calls", "cpu_op": "operators",
}  # fmt: skip


def train(device: str, steps: int) -> profile:
    """Profiles steps of a small network; the batch of the next step is copied on a stream of its own."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [torch.randn(16, 3, 32, 32).pin_memory() for _ in range(steps + 1)]
    side = torch.Stream(device)
    x = batches[0].to(device)

    def step(x: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        with side:
            coming = following.to(device, non_blocking=True)
        with record_function("step"):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        torch.accelerator.current_stream().wait_stream(side)
        return coming

    x = step(x, batches[0])  # compiles kernels
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        for batch in batches[1:]:
            x = step(x, batch)
    return prof


def rows(events: list[dict[str, Any]]) -> dict[tuple[str, Any], list[dict[str, Any]]]:
    """The spans of each track: a stream of the device, or the host's calls and operators."""
    tracks: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    for event in events:
        category = event.get("cat")
        if event.get("ph") != "X" or category not in COLOURS:
            continue
        on_host = category in ("cpu_op", "privateuse1_runtime")
        key = (f"host: {NAMES[category]}", 0) if on_host else ("stream", event["tid"])
        tracks.setdefault(key, []).append(event)
    return dict(sorted(tracks.items(), key=lambda item: str(item[0])))


def draw(events: list[dict[str, Any]], path: Path) -> None:
    tracks = rows(events)
    start = min(e["ts"] for spans in tracks.values() for e in spans)
    figure, axes = plt.subplots(figsize=(12, 1 + 0.6 * len(tracks)), layout="constrained")
    for place, spans in enumerate(tracks.values()):
        # Annotations lie behind what they annotate.
        for event in sorted(spans, key=lambda e: e["cat"] != "gpu_user_annotation"):
            axes.barh(
                place,
                event["dur"] / 1e3,
                left=(event["ts"] - start) / 1e3,
                height=0.8,
                color=COLOURS[event["cat"]],
            )
    axes.set_yticks(
        range(len(tracks)),
        [f"{name} {number}" if name == "stream" else name for name, number in tracks],
    )
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    seen = {e["cat"] for spans in tracks.values() for e in spans}
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=COLOURS[c]) for c in sorted(seen)],
                [NAMES[c] for c in sorted(seen)], loc="upper right", ncols=3)  # fmt: skip
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="graft")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("."))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    prof = train(options.device, options.steps)
    trace, picture = options.out / "trace.json", options.out / "trace.png"
    prof.export_chrome_trace(str(trace))
    draw(json.loads(trace.read_text())["traceEvents"], picture)
    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=10))
    print(f"wrote {trace} and {picture}")


if __name__ == "__main__":
    main()
