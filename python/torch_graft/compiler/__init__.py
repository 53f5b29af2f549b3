# python/torch_graft/compiler/__init__.py: the graph compiler's face in Python; importing it loads no Dynamo.
"""Traces models to the graph compiler's text form and shows what its passes make of them.

See docs/develop/compiler.md for the use, docs/develop/compiler-ir.md for the text form.
"""

from __future__ import annotations

from torch_graft.compiler.capturing import Captured, capture
from torch_graft.compiler.refusal import Refusal
from torch_graft.compiler.reports import Report, reports, reset_reports

__all__ = ["Captured", "Refusal", "Report", "capture", "reports", "reset_reports"]
