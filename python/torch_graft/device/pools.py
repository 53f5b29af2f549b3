# python/torch_graft/device/pools.py: memory pools of the user, as torch.cuda offers them.
"""Device memory that is kept for those who ask for it; see docs/use/memory.md."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_graft import _C
from torch_graft.device import snapshots
from torch_graft.device.indices import DeviceLike, device_index


class MemPool:
    """Memory that is given to nobody else, also when it is free, as long as this object lives.

    Afterwards it is as any other; tensors keep theirs. id: for Graph(pool=...), whose memory then
    stays with the pool, too.
    """

    def __init__(self) -> None:
        self.id = _C.new_pool()
        self._devices: set[int] = set()

    def _keep_on(self, index: int) -> None:
        if index in self._devices:
            return
        _C.retain_pool(index, self.id[1])
        self._devices.add(index)
        weakref.finalize(self, _C.release_pool, index, self.id[1]).atexit = False

    def snapshot(self) -> list[dict[str, Any]]:
        """The pool's segments on every device, as memory_snapshot lists them."""
        counted = range(_C.device_count())
        return snapshots.segments_of(snapshots.of(sorted({*counted, *self._devices})), self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: DeviceLike = None) -> Iterator[None]:
    """What this thread allocates on the device (the current one) comes from the pool."""
    index = device_index(device, optional=True)
    pool._keep_on(index)
    before = _C.choose_pool(index, pool.id[1])
    try:
        yield
    finally:
        _C.choose_pool(index, before)
