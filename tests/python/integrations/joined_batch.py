"""A model, data and steps that two ranks share; what one process on the CPU makes of the joined batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

HERE = Path(__file__).parent
ROWS, RATE = 32, 0.1
MARK = "rank: "  # begins a line that a rank reports


class Rows(Dataset):
    """Rows as transformers' models name them; tuples with as_tuple."""

    def __init__(self, as_tuple: bool = True) -> None:
        made = torch.Generator().manual_seed(1)
        self.x, self.as_tuple = torch.randn(ROWS, 6, generator=made), as_tuple
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        if self.as_tuple:
            return self.x[index], self.y[index]
        return {"x": self.x[index], "labels": self.y[index]}


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))


def numbers(tensors: Any) -> list[float]:
    """All elements, those of other ranks' shards too: then each rank calls it."""
    whole = [t.full_tensor() if hasattr(t, "full_tensor") else t for t in tensors]
    return torch.cat([t.detach().float().cpu().flatten() for t in whole]).tolist()


def held(model: nn.Module) -> int:
    """How many elements of the parameters this rank has."""
    return sum(getattr(p, "_local_tensor", p).numel() for p in model.parameters())


def reference(batch: int = 8) -> tuple[list[list[float]], list[float]]:
    """Gradients of each step and the parameters after the last one, of one process on the CPU."""
    model, rows, gradients = network(), Rows(), []
    for start in range(0, ROWS, batch):
        part = slice(start, start + batch)
        model.zero_grad()
        nn.functional.cross_entropy(model(rows.x[part]), rows.y[part]).backward()
        gradients.append(numbers(p.grad for p in model.parameters()))
        with torch.no_grad():
            for p in model.parameters():
                p -= RATE * p.grad
    return gradients, numbers(model.parameters())


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(
        torch.tensor(found), torch.tensor(wanted), rtol=tolerance, atol=tolerance
    )


def report(device: Any, **facts: Any) -> None:
    """What a rank prints: a line of JSON, with what fell back to the CPU."""
    fallen = torch.get_device_module(device).fallback.counts() if device.type != "cpu" else {}
    line = {"device": str(device), "fallbacks": sorted(fallen), **facts}
    sys.stdout.write(f"{MARK}{json.dumps(line)}\n")
    sys.stdout.flush()


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    kept = {key: value for key, value in os.environ.items() if key != "GRAFT_HOST_DEVICES"}
    quiet = {
        "PYTHONPATH": paths,
        "OCL_ICD_VENDORS": "/nonexistent",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    return kept | quiet | more


def run_ranks(script: str, ranks: int, *arguments: str, **more: str) -> list[dict[str, Any]]:
    """Starts a script of this folder by the launcher; what its ranks reported, in order of the devices."""
    launcher = ["-m", "torch_graft", "run", "--nproc", str(ranks), str(HERE / script)]
    return run_python(*launcher, *arguments, **more)


def run_python(*arguments: str, **more: str) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        env=environment(**more),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [
        json.loads(line.removeprefix(MARK))
        for line in ran.stdout.splitlines()
        if line.startswith(MARK)
    ]
    for line in lines:
        line["errors"] = ran.stderr
    return sorted(lines, key=lambda line: line["device"])
