"""How long calls take on a device."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from record import synchronize


def seconds_per_call(device: str, call: Callable[[], Any], count: int) -> float:
    """Seconds per call of count in a row, the last synchronisation included; no garbage collection."""
    gc.disable()
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize(device)
    took = (time.perf_counter() - start) / count
    gc.enable()
    return took
