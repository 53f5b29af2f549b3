# tests/python/device/test_identity.py: which device of the machine this is, and how devices are linked.
"""Versions, UUID, PCI address and links, as a driver gives them."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torch_graft
from sandbox import Ran, build_c, doctor

pytestmark = [pytest.mark.host_only, pytest.mark.one_mode]

# tiny.c as a card in a slot.
CARD = """
#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query
static graft_status identity(uint32_t ordinal, graft_device_identity* out) {
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  out->known = GRAFT_IDENTITY_UUID | GRAFT_IDENTITY_PCI;
  for (int i = 0; i < 16; ++i) out->uuid[i] = (uint8_t)(i + 1);
  out->pci_domain = 1, out->pci_bus = 0x3b, out->pci_device = 2, out->pci_function = 1;
  strcpy(out->driver_version, "7.5.1");
  strcpy(out->firmware_version, "fw-12");
  return GRAFT_OK;
}
graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table mine = kTable;
  mine.device_identity = identity;
  return graft_driver_fill(table, &mine);
}
"""


def test_the_host_driver_knows_its_versions(module: Any) -> None:
    facts = module.get_device_properties(0)
    assert isinstance(facts.uuid, uuid.UUID)
    assert facts.driver_version == torch_graft.__version__
    assert (facts.pci_domain_id, facts.pci_bus_id, facts.pci_device_id) == (None, None, None)


def test_a_card_has_an_address(python: Callable[..., Ran], tmp_path: Path) -> None:
    card = {"GRAFT_DRIVER_PATH": build_c(tmp_path / "card.so", CARD), "GRAFT_DEVICES": "tiny"}
    ran = python(
        """
        p = torch.get_device_module(D).get_device_properties()
        print(json.dumps([str(p.uuid), p.driver_version, p.firmware_version,
                          p.pci_domain_id, p.pci_bus_id, p.pci_device_id, p.pci_function_id]))
        """,
        **card,
    )
    assert ran.value() == ["01020304-0506-0708-090a-0b0c0d0e0f10", "7.5.1", "fw-12", 1, 0x3B, 2, 1]
    text = doctor(**card).stdout
    assert "driver version 7.5.1, firmware fw-12, PCI 0001:3b:02.1, UUID 01020304-0506" in text


def test_the_uuid_is_the_devices_in_every_process(python: Callable[..., Ran]) -> None:
    code = "print(json.dumps([str(p.uuid) for p in torch.get_device_module(D).devices()]))"
    first = python(code, GRAFT_HOST_DEVICES="2").value()
    assert first == python(code, GRAFT_HOST_DEVICES="2").value()
    assert len(set(first)) == 2


@pytest.mark.parametrize(
    ("simulated", "kind", "speed"),
    [(None, "same memory", 0), ("bandwidth=50G", "direct link", 50_000_000_000)],
)
def test_links(python: Callable[..., Ran], simulated: str | None, kind: str, speed: int) -> None:
    ran = python(
        """
        g = torch.get_device_module(D)
        x = torch.arange(5, device=f"{D}:0").to(f"{D}:1")
        link = g.device_link(0, 1)
        print(json.dumps([link.kind, link.bytes_per_second, g.can_device_access_peer(0, 1), x.tolist()]))
        """,
        GRAFT_HOST_DEVICES="2",
        GRAFT_HOST_SIMULATE=simulated,
    )
    assert ran.value() == [kind, speed, True, [0, 1, 2, 3, 4]]


def test_the_doctor_draws_the_links(device: str) -> None:
    text = doctor(GRAFT_HOST_DEVICES="3", GRAFT_HOST_SIMULATE="bandwidth=50G").stdout
    assert f"  {device}:1 - {device}:2  direct link, 50.0 GB/s\n" in text
    assert "Topology" not in doctor(GRAFT_HOST_DEVICES="1").stdout
