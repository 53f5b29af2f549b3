# python/torch_graft/compiler/default_backend.py: torch.compile without a backend means "graft".
"""Made before the first compilation, which reads it."""

from __future__ import annotations

import logging

from torch_graft import private_names as inside
from torch_graft.compiler.first_compile import before_first_compile

_log = logging.getLogger("torch_graft.compiler")


def _set_default() -> None:
    before = inside.default_backend()
    if before == "inductor":
        inside.set_default_backend("graft")
    _log.debug("the default backend of torch.compile was '%s' and is '%s'", before,
               inside.default_backend())  # fmt: skip


def register() -> None:
    """Called once, by attach."""
    before_first_compile(_set_default)
