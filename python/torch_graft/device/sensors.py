# python/torch_graft/device/sensors.py: what a device's sensors read, in torch.cuda's names and units.
"""The device's sensors. A driver that has no such sensor raises RuntimeError."""

from __future__ import annotations

from torch_graft import _C
from torch_graft.device.indices import DeviceLike, device_index


def _read(device: DeviceLike, which: int) -> int:
    return _C.sensor(device_index(device, optional=True), which)


def temperature(device: DeviceLike = None) -> int:
    """Degrees Celsius."""
    return round(_read(device, _C.SENSOR_TEMPERATURE) / 1000)


def power_draw(device: DeviceLike = None) -> int:
    """Milliwatts."""
    return _read(device, _C.SENSOR_POWER)


def clock_rate(device: DeviceLike = None) -> int:
    """Megahertz."""
    return round(_read(device, _C.SENSOR_CLOCK) / 1_000_000)


def utilization(device: DeviceLike = None) -> int:
    """Percent of the time in which the device computed, of the last moments."""
    return _read(device, _C.SENSOR_UTILIZATION)
