# conformance/torch_conformance/__init__.py: puts any torch device through PyTorch's own test databases.
"""The conformance runner: `python -m torch_conformance --device <name>`, or torch-conformance."""

from __future__ import annotations


class SetupError(Exception):
    """The run cannot start or go on; the text says what was given, expected, and what to do."""
