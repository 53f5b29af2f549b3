// drivers/veda/facts/identity.cpp: the versions of VEDA and of the card's firmware.
#include <algorithm>
#include <cstring>
#include <string>

#include "device.h"
#include "graft/driver_slot.h"

namespace graft::veda {
namespace {

// As far as VEDA answers; it knows no UUID and no PCI address.
graft_device_identity identify(VEDAdevice device) {
  graft_device_identity facts = {};
  const char *library = nullptr, *below = nullptr;
  std::string versions;
  if (GRAFT_VEDA_CALL(GetVersion, &library).ok() && library != nullptr) {
    versions = std::string("VEDA ") + library;
  }
  if (GRAFT_VEDA_CALL(DriverGetVersion, &below).ok() && below != nullptr) {
    versions += (versions.empty() ? "VEOS " : ", VEOS ") + std::string(below);
  }
  copy_text(versions, facts.driver_version, sizeof facts.driver_version);
  int firmware = 0;
  if (GRAFT_VEDA_CALL(DeviceGetAttribute, &firmware, VEDA_DEVICE_ATTRIBUTE_FIREWARE_VERSION, device)
          .ok()) {
    copy_text(std::to_string(firmware), facts.firmware_version, sizeof facts.firmware_version);
  }
  return facts;
}

}  // namespace

graft_status IdentitySlots::device_identity(uint32_t ordinal, graft_device_identity* identity) {
  if (identity == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_identity: no out pointer given");
  if (forked()) return fail(GRAFT_DEVICE_LOST, "this process was forked after VEDA was loaded");
  const Catalog& known = catalog();
  if (known.status != GRAFT_OK) return fail(known.status, known.problem);
  if (ordinal >= known.devices.size())
    return fail(GRAFT_NOT_FOUND, "device_identity: no Vector Engine " + std::to_string(ordinal));
  graft_device_identity mine = identify(known.devices[ordinal].device);
  mine.struct_size = identity->struct_size;
  std::memcpy(identity, &mine, std::min<size_t>(identity->struct_size, sizeof mine));
  return GRAFT_OK;
}

}  // namespace graft::veda
