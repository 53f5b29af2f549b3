# python/torch_graft/compiler/first_compile.py: settings that are made before PyTorch first compiles a function.
"""Some settings are kept in modules of PyTorch that `import torch` does not load and that take a
second to load. PyTorch announces its first compilation to its logger of API usage
(c10::SetAPIUsageLogger) before it reads them, so they are made there. The logger's other use, to
print every event where PYTORCH_API_USAGE_STDERR is set, is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable

from torch_graft import _C
from torch_graft import private_names as inside

Action = Callable[[], None]

_actions: list[Action] = []


def before_first_compile(action: Action) -> None:
    """Calls action once: before PyTorch first compiles in this process, or now if it can already."""
    if inside.module_of("default_backend") in sys.modules:
        action()
        return
    if not _actions:
        _C.before_first(inside.compile_events(), _run)
    _actions.append(action)


def _run() -> None:
    while _actions:
        _actions.pop(0)()
