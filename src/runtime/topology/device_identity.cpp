// src/runtime/topology/device_identity.cpp: which device of which machine a driver's device is.
#include "runtime/topology/device_identity.h"

#include <algorithm>
#include <string_view>

#include "runtime/driver/error.h"
#include "runtime/driver/facts_room.h"
#include "runtime/driver/readable_text.h"

namespace graft {
namespace {

template <size_t size>
std::string line_of(const char (&text)[size]) {
  const std::string_view whole(text, size);
  std::string line = readable(std::string(whole.substr(0, whole.find('\0'))));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

DeviceIdentity read_identity(const Driver& driver, uint32_t ordinal) {
  const auto slot = driver.table().device_identity;
  if (slot == nullptr) return {};
  FactsRoom<graft_device_identity> room;
  graft_device_identity& facts = room.facts;
  const std::string device = "device " + std::to_string(ordinal);
  const graft_status status = Driver::call_locked(slot, ordinal, &facts);
  if (status != GRAFT_OK) driver.fail(status, "device_identity", device, {});
  if (room.overrun()) {
    throw Error(GRAFT_INVALID_ARGUMENT, device + " of driver '" + driver.name() +
                                            "': device_identity wrote more than struct_size "
                                            "bytes. Ask its vendor.");
  }
  DeviceIdentity identity;
  if ((facts.known & GRAFT_IDENTITY_UUID) != 0) identity.uuid = std::to_array(facts.uuid);
  if ((facts.known & GRAFT_IDENTITY_PCI) != 0) {
    identity.pci = {facts.pci_domain, facts.pci_bus, facts.pci_device, facts.pci_function};
  }
  identity.driver_version = line_of(facts.driver_version);
  identity.firmware_version = line_of(facts.firmware_version);
  return identity;
}

}  // namespace graft
