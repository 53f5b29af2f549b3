"""How an example begins on each rank that torchrun started."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist


def begin(description: str | None, epochs: int) -> tuple[argparse.Namespace, torch.device]:
    """Joins the group of ranks; returns the options (epochs, out) and this rank's own device."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    options = parser.parse_args()
    kind = torch.accelerator.current_accelerator()
    module = torch.get_device_module(kind)
    module.set_device(int(os.environ["LOCAL_RANK"]) % module.device_count())
    dist.init_process_group()
    return options, torch.device(kind.type, module.current_device())
