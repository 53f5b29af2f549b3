"""Trains the digits network in float32, bfloat16 and float16 and compares the three."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from digits import BATCH, Net, correct, load, logits_of
from record import Meter, metered, side_options, table

GOAL, SEED = 0.93, 0
DTYPES = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
OVERFLOW = 25  # the step whose loss is made infinite


@dataclass
class Run:
    """What one precision gave."""

    precision: str
    accuracy: float
    loss: float
    skipped: int
    scale: float
    activations: str
    parameters: str
    meter: Meter


def train(device: str, precision: str, epochs: int) -> Run:
    """Trains from the seed; only float16 needs the scaler, which skips the step that overflows."""
    dtype = DTYPES[precision]
    train_x, train_y, test_x, test_y = (part.to(device) for part in load())
    torch.manual_seed(SEED)
    model = Net().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, fused=True)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**12, growth_interval=20,
                                  enabled=dtype is torch.float16)  # fmt: skip
    autocast = torch.autocast(device, dtype or torch.bfloat16, enabled=dtype is not None)
    order = torch.Generator().manual_seed(SEED)
    skipped, step = 0, 0
    loss = logits = torch.empty(0)
    with metered(device) as meter:
        for _ in range(epochs):
            for rows in torch.randperm(len(train_x), generator=order).split(BATCH):
                optimizer.zero_grad()
                with autocast:
                    logits = model(train_x[rows.to(device)])
                    loss = nn.functional.cross_entropy(logits, train_y[rows.to(device)])
                step += 1
                spoilt = loss * float("inf") if scaler.is_enabled() and step == OVERFLOW else loss
                before = scaler.get_scale()
                scaler.scale(spoilt).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                scaler.step(optimizer)
                scaler.update()
                skipped += scaler.get_scale() < before
    with autocast:
        right = correct(logits_of(model, test_x), test_y)
    kinds = {str(p.dtype).removeprefix("torch.") for p in model.parameters()}
    return Run(
        precision, right / len(test_y), loss.item(), skipped, scaler.get_scale(),
        str(logits.dtype).removeprefix("torch."), "/".join(sorted(kinds)), meter,
    )  # fmt: skip


def figures(runs: list[Run]) -> str:
    titles = ("precision", "accuracy", "last loss", "skipped", "scale", "activations", "parameters",
              "launches", "time")  # fmt: skip
    rows = [titles] + [
        (r.precision, f"{r.accuracy:.2%}", f"{r.loss:.4f}", str(r.skipped), f"{r.scale:g}",
         r.activations, r.parameters, str(r.meter.native), f"{r.meter.seconds:.2f} s")
        for r in runs
    ]  # fmt: skip
    return table(rows)


def checks(runs: list[Run]) -> dict[str, bool]:
    half = runs[-1]
    return {
        f"every precision reaches {GOAL:.0%}": all(r.accuracy >= GOAL for r in runs),
        "activations have the precision, parameters stay float32": all(
            (r.activations, r.parameters) == (r.precision, "float32") for r in runs
        ),
        "the step that overflowed was skipped": half.skipped >= 1,
        "no operator ran on the CPU": not any(r.meter.fallbacks for r in runs),
    }


def main() -> int:
    parser = side_options(__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    options = parser.parse_args()
    runs = [train(options.device, precision, options.epochs) for precision in DTYPES]
    held = checks(runs)
    print(figures(runs))
    print(*(f"  {'ok  ' if good else 'FAIL'} {text}" for text, good in held.items()), sep="\n")
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"runs": [asdict(r) for r in runs], "checks": held}, indent=1)
    (options.out / "amp_training.json").write_text(text)
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
