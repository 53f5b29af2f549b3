// driver/device.cpp: how many chips there are, what each can do, opening and closing.
//
// For the real chip: count what your SDK finds, and read the properties from it. device_count and
// device_properties open nothing: they run when a program asks for the number of devices.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "handle.h"
#include "slots.h"

namespace acme_driver {
namespace {

graft_status no_chip(uint32_t ordinal) {
  return graft::fail(GRAFT_NOT_FOUND, "there is no chip " + std::to_string(ordinal) + " of " +
                                          std::to_string(chip_count()));
}

}  // namespace

graft_status DeviceSlots::device_count(uint32_t* out_count) {
  *out_count = chip_count();
  return GRAFT_OK;
}

graft_status DeviceSlots::device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (ordinal >= chip_count()) return no_chip(ordinal);
  graft_device_properties mine = {};
  mine.struct_size = properties->struct_size;
  mine.device_class = GRAFT_CPU_LIKE;
  mine.features = GRAFT_FEATURE_FLOAT64 | GRAFT_FEATURE_INT64_ATOMICS;
  mine.compute_units = 1;
  mine.max_group_size = 1;
  mine.sub_group_size = 4;
  mine.capability_major = 1;
  mine.memory_bytes = CHIP_MEMORY_BYTES;
  mine.allocation_alignment = CHIP_ALIGNMENT;
  graft::copy_text("Acme emulated chip", mine.name, sizeof mine.name);
  graft::copy_text("Acme", mine.vendor, sizeof mine.vendor);
  graft::copy_text(kDialect, mine.dialect, sizeof mine.dialect);
  // Graft may know a shorter struct.
  std::memcpy(properties, &mine, std::min<size_t>(mine.struct_size, sizeof mine));
  return GRAFT_OK;
}

graft_status DeviceSlots::device_open(uint32_t ordinal, graft_device* out_device) {
  if (ordinal >= chip_count()) return no_chip(ordinal);
  auto device = std::make_unique<graft_device_s>();
  chip* opened = nullptr;
  const graft_status status = status_of(chip_open(ordinal, &opened), "device_open");
  if (status != GRAFT_OK) return status;
  device->handle.reset(opened);
  *out_device = device.release();
  return GRAFT_OK;
}

graft_status DeviceSlots::device_close(graft_device device) {
  delete device;
  return GRAFT_OK;
}

}  // namespace acme_driver
