# conformance/torch_conformance/suites/upstream.py: the suites of PyTorch's own databases, registered by importing this.
from __future__ import annotations

from torch_conformance.suites import (  # noqa: F401
    autocast,
    errors,
    layouts,
    modules,
    operators,
    optimizers,
    refusals,
)
