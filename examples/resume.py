"""Kills a training with signal 9, resumes it from its checkpoint, and compares every loss.

The checkpoint holds all that the next step depends on: parameters, optimizer, schedule, scaler, the
states of the random number generators, and the place in the data. It is replaced in one step, so a
kill while it is written leaves the one before.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from digits import load
from record import default_device

BATCH, STEPS, EVERY, KILL_AT = 32, 60, 8, 37


class Training:
    """One training and its checkpoint: a network with dropout, AdamW, a schedule, a scaler."""

    def __init__(self, device: str) -> None:
        torch.manual_seed(7)
        self.device, self.step = device, 0
        self.images, self.labels = (part.to(device) for part in load()[:2])
        self.model = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10)
        ).to(device)  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 5e-3, STEPS)
        self.scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=10)
        self.order = torch.Generator().manual_seed(1)

    def parts(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule,
                "scaler": self.scaler}  # fmt: skip

    def save(self, path: Path) -> None:
        state: dict[str, Any] = {name: part.state_dict() for name, part in self.parts().items()}
        state["random"] = torch.get_device_module(self.device).get_rng_state()
        state["cpu random"], state["order"] = torch.get_rng_state(), self.order.get_state()
        state["step"] = self.step
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def restore(self, path: Path) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        torch.get_device_module(self.device).set_rng_state(state["random"])
        torch.set_rng_state(state["cpu random"])
        self.order.set_state(state["order"])
        self.step = state["step"]

    def advance(self) -> float:
        """One step; returns its loss."""
        rows = torch.randint(len(self.images), (BATCH,), generator=self.order).to(self.device)
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.float16):
            loss = nn.functional.cross_entropy(self.model(self.images[rows]), self.labels[rows])
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.step += 1
        return loss.item()


def work(device: str, checkpoint: Path) -> None:
    """The process that is killed: resumes where there is a checkpoint, prints a line for each step."""
    training = Training(device)
    if checkpoint.exists():
        training.restore(checkpoint)
    print(json.dumps({"from": training.step}), flush=True)
    while training.step < STEPS:
        loss = training.advance()
        print(json.dumps({"step": training.step, "loss": loss}), flush=True)
        if training.step % EVERY == 0:
            training.save(checkpoint)


def watch(device: str, checkpoint: Path, kill_at: int | None) -> tuple[int, int, dict[int, float]]:
    """Runs the worker; returns its exit status, its first step and the loss of each step."""
    command = [sys.executable, __file__, "--device", device, "--work", str(checkpoint)]
    losses: dict[int, float] = {}
    begin = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            said = json.loads(line)
            if "from" in said:
                begin = said["from"]
                continue
            losses[said["step"]] = said["loss"]
            if said["step"] == kill_at:
                os.kill(worker.pid, signal.SIGKILL)
                break
    return worker.returncode, begin, losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default=default_device())
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.device, options.work)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "resume.pt"
    checkpoint.unlink(missing_ok=True)
    killed, _, first = watch(options.device, checkpoint, KILL_AT)
    ended, begin, second = watch(options.device, checkpoint, None)
    whole = Training(options.device)
    expected = {step: whole.advance() for step in range(1, STEPS + 1)}
    pieced = {step: loss for step, loss in first.items() if step <= begin} | second
    print(f"killed after step {max(first)}, resumed after step {begin} of {STEPS}")
    for step in (begin, begin + 1, KILL_AT, STEPS):
        print(f"  step {step:2}: {pieced[step]:.9f}, uninterrupted {expected[step]:.9f}")
    held = {
        "the first process died of signal 9": killed == -signal.SIGKILL,
        "the second one ended by itself": ended == 0,
        "it did not begin anew": 0 < begin <= KILL_AT,
        f"all {STEPS} losses equal the uninterrupted ones": pieced == expected,
    }
    print(*(f"  {'ok  ' if good else 'FAIL'} {text}" for text, good in held.items()), sep="\n")
    text = json.dumps({"resumed": begin, "losses": pieced, "checks": held}, indent=1)
    (options.out / "resume.json").write_text(text)
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
