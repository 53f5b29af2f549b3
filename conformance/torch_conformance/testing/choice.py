# conformance/torch_conformance/testing/choice.py: which distributed cases run, for this process and those of the cases.
"""The choice travels in an environment variable: a process of a case begins with nothing else."""

from __future__ import annotations

import json
import os
from typing import Any

from torch_conformance import SetupError

VARIABLE = "TORCH_CONFORMANCE_DISTRIBUTED"


def make(**choice: Any) -> None:
    """Sets the choice of this process and its children. Raises SetupError if there is another one."""
    text = json.dumps(choice)
    if os.environ.get(VARIABLE, text) != text:
        raise SetupError(
            "this process already has distributed cases with other settings "
            f"({os.environ[VARIABLE]}): give each device and backend a run of its own"
        )
    os.environ[VARIABLE] = text


def made() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ[VARIABLE])
    return found
