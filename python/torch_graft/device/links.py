# python/torch_graft/device/links.py: how bytes get from one device to another.
"""What drivers say of the links between devices."""

from __future__ import annotations

from typing import NamedTuple

from torch_graft import _C
from torch_graft.device.indices import DeviceLike, device_index


class DeviceLink(NamedTuple):
    """How bytes get from one device to another."""

    kind: str  # "host memory", "bus", "direct link" or "same memory"
    bytes_per_second: int  # in one direction; 0 if unknown


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether copies go from device to device, not through the host. No kernel reads another's memory."""
    source, target = device_index(device, optional=True), device_index(peer_device)
    for index, which in ((source, "device"), (target, "peer device")):
        if index < 0 or index >= _C.device_count():
            raise AssertionError(f"Invalid {which} id")
    return source != target and device_link(source, target).kind != "host memory"


def device_link(device: DeviceLike, peer_device: DeviceLike) -> DeviceLink:
    """What the driver says of the way from one device to another. Opens none."""
    found = _C.device_link(device_index(device, optional=True), device_index(peer_device))
    return DeviceLink("host memory", 0) if found is None else DeviceLink(*found)
