# python/torch_graft/offloading/residence.py: which weights of a model stay on the device between calls.
from __future__ import annotations

import torch

ALWAYS = 1 << 16  # bytes of a weight that costs more to fetch than to keep
FIT = 7 / 8  # of the device's free memory may be weights that all stay, and their gradients


def check_resident(resident: str | int) -> None:
    """Raises ValueError for what optimize(resident=) does not take."""
    if resident in ("auto", "all"):
        return
    if not isinstance(resident, int) or isinstance(resident, bool) or resident < 0:
        raise ValueError(
            'resident must be "auto", "all" or a number of bytes of weights that stay on the device, '
            f"got {resident!r}"
        )


def available(device: torch.device) -> int:
    """Bytes of the device that new tensors of this process may take."""
    module = torch.get_device_module(device.type)
    free, total = module.mem_get_info(device)
    allocated = module.memory_allocated(device)
    kept = module.memory_reserved(device) - allocated
    limit = int(total * module.get_per_process_memory_fraction(device))
    return int(min(free + kept, limit - allocated))


def too_large(
    model: torch.nn.Module, device: torch.device, resident: str | int, training: bool
) -> bool:
    """Whether some of a model's weights have to stream through."""
    sizes = _sizes(model)
    if resident == "all":
        return False
    if isinstance(resident, int):
        return sum(size for size in sizes if size > ALWAYS) > resident
    with_gradients = 2 if training else 1
    return with_gradients * sum(sizes) > FIT * available(device)


class Residence:
    """Chooses the weights that stay, spread over the model: the others come while they compute.

    resident: their bytes; "auto": half of the device's free memory, with what streams through.
    """

    def __init__(self, model: torch.nn.Module, device: torch.device, resident: str | int) -> None:
        sizes = _sizes(model)
        if isinstance(resident, str):
            resident = max(0, available(device) // 2 - 2 * max(sizes, default=0))
        self._most = resident
        self._share = resident / max(1, sum(sizes))
        self._seen = self._kept = 0

    def stays(self, host: torch.Tensor) -> bool:
        """Whether this weight, the next one of the model, stays."""
        size = _bytes(host)
        if size <= ALWAYS:
            return True
        self._seen += size
        if self._kept + size > min(self._most, self._share * self._seen):
            return False
        self._kept += size
        return True


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _sizes(model: torch.nn.Module) -> list[int]:
    return [_bytes(tensor) for tensor in (*model.parameters(), *model.buffers())]
