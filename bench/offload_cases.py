"""Models that stay on the CPU while the device computes, beside the same model and images on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import resnet50
import torch_graft
from cases import Case, Work

OURS, PAIRS = "graft", 7


def offloaded(batch: int, **given: Any) -> Callable[[str], Work]:
    """given: to optimize(). The other side holds model and images on the device and waits for each
    result there."""

    def make(device: str) -> Work:
        model, images, _ = resnet50.seeded("cpu", batch)
        if device != "cpu":
            moved = torch_graft.optimize(model.eval(), device=device, **given)
            return lambda: moved(images)
        resident = torch_graft.optimize(model.eval().to(OURS))
        there, wait = images.to(OURS), torch.get_device_module(OURS).synchronize

        def call() -> None:
            resident(there)
            wait()

        return call

    return make


def case(what: str, goal: float, batch: int, **given: Any) -> Case:
    name = f"transparent offload of ResNet-50 b{batch}{what} / device-resident"
    return Case(name, goal, offloaded(batch, **given), pairs=PAIRS)


OFFLOADING: dict[str, Case] = {
    one.name: one
    for one in (
        case("", 1.10, 16),
        case(" without checksums", 1.10, 16, uncounted_writes="ignore"),
        case(" that streams through", 1.25, 16, resident=0),
        case(" that streams through", 2.0, 1, resident=0),
    )
}
