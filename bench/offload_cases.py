"""Models that stay on the CPU while the device computes, beside the same model and images on the device."""

from __future__ import annotations

from collections.abc import Callable

import torch

import resnet50
import torch_graft
from cases import Case, Work

OURS, PAIRS = "graft", 7


def offloaded(batch: int, uncounted_writes: str) -> Callable[[str], Work]:
    """The other side holds model and images on the device and waits for each result there."""

    def make(device: str) -> Work:
        model, images, _ = resnet50.seeded("cpu", batch)
        if device != "cpu":
            given = {"device": device, "uncounted_writes": uncounted_writes}
            moved = torch_graft.optimize(model.eval(), **given)
            return lambda: moved(images)
        resident = torch_graft.optimize(model.eval().to(OURS))
        there, wait = images.to(OURS), torch.get_device_module(OURS).synchronize

        def call() -> None:
            resident(there)
            wait()

        return call

    return make


def case(what: str, goal: float, batch: int, uncounted_writes: str) -> Case:
    name = f"transparent offload of ResNet-50 b{batch}{what} / device-resident"
    return Case(name, goal, offloaded(batch, uncounted_writes), pairs=PAIRS)


OFFLOADING: dict[str, Case] = {
    one.name: one
    for one in (
        case("", 1.10, 16, "checksum"),
        case(" without checksums", 1.10, 16, "ignore"),
    )
}
