# python/torch_graft/cli/topology.py: which devices these are and how they are linked, in words.
"""Lines of the doctor about what drivers know of their devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_graft._C import DeviceProperties


def links(name: str, count: int) -> list[str]:
    """How bytes get between the devices, as far as their drivers know; nothing of a single device."""
    from torch_graft.device import accelerator

    lines = ["Topology"] if count > 1 else []
    for index in range(count):
        for peer in range(index + 1, count):
            link = accelerator.device_link(index, peer)
            speed = f", {link.bytes_per_second / 1e9:.1f} GB/s" if link.bytes_per_second else ""
            lines.append(f"  {name}:{index} - {name}:{peer}  {link.kind}{speed}")
    return lines


def identity(facts: DeviceProperties) -> list[str]:
    """Which device of the machine this is, as far as the driver knows."""
    parts = []
    if facts.driver_version:
        parts.append(f"driver version {facts.driver_version}")
    if facts.firmware_version:
        parts.append(f"firmware {facts.firmware_version}")
    if facts.pci_bus_id is not None:
        parts.append(
            f"PCI {facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}"
            f".{facts.pci_function_id:x}"
        )
    return [", ".join([*parts, f"UUID {facts.uuid}"])] if parts else []
