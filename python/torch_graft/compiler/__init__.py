# python/torch_graft/compiler/__init__.py: the graph compiler's face in Python; importing it loads nothing.
"""Traces models to the graph compiler's text form and shows what its passes make of them.

See docs/develop/compiler.md for the use, docs/develop/compiler-ir.md for the text form.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_graft.compiler.capturing import Captured, capture
    from torch_graft.compiler.refusal import Refusal
    from torch_graft.compiler.report import Report, reports, reset_reports

__all__ = ["Captured", "Refusal", "Report", "capture", "reports", "reset_reports"]

# Looked up at first use: `import torch` attaches the backend from this folder, and needs none of these.
_HOMES = {"Captured": "capturing", "Refusal": "refusal", "Report": "report", "capture": "capturing",
          "reports": "report", "reset_reports": "report"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
