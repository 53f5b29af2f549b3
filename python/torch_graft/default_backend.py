# python/torch_graft/default_backend.py: torch.compile without a backend means "graft".
"""Makes the setting as soon as there is a place for it."""

from __future__ import annotations

from typing import Any

from torch_graft.loading import when_loaded


def _set_default(registry: Any) -> None:
    if registry.get_default_backend() == "inductor":
        registry.set_default_backend("graft")


def register() -> None:
    """Called once, by attach."""
    when_loaded("torch._dynamo.backends.registry", _set_default)
