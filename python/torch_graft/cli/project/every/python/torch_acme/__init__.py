# python/torch_acme/__init__.py: tells Graft where the driver is, and how the device is called.
"""PyTorch's device "acme". `import torch` suffices: Graft finds this package by its entry point."""

from __future__ import annotations

from pathlib import Path

__all__ = ["driver"]


def driver() -> tuple[str, str] | None:
    """The driver's path and the device's name; None if this machine has no such chip.

    It runs at each `import torch`, so it starts nothing and imports little. For the real chip:
    return None where its kernel module or its SDK is missing.
    """
    return str(Path(__file__).resolve().with_name("graft_acme.so")), "acme"
