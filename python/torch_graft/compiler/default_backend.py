# python/torch_graft/compiler/default_backend.py: torch.compile without a backend means "graft".
"""Makes the setting as soon as there is a place for it."""

from __future__ import annotations

import logging
from typing import Any

from torch_graft import private_names as inside
from torch_graft.compiler.loading import when_loaded

_log = logging.getLogger("torch_graft.compiler")


def _set_default(_registry: Any) -> None:
    before = inside.default_backend()
    if before == "inductor":
        inside.set_default_backend("graft")
    _log.debug("the default backend of torch.compile was '%s' and is '%s'", before,
               inside.default_backend())  # fmt: skip


def register() -> None:
    """Called once, by attach."""
    when_loaded(inside.module_of("default_backend"), _set_default)
