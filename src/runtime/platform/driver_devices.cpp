// src/runtime/platform/driver_devices.cpp: asks a driver for its devices.
#include "runtime/platform/driver_devices.h"

#include <cstdint>

#include "runtime/driver/device_properties.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

constexpr uint32_t kUnwritten = UINT32_MAX;
constexpr uint32_t kMostOrdinals = 1024;  // more than that is rubbish, not a machine

uint32_t count_devices(Driver& driver) {
  uint32_t count = kUnwritten;
  const graft_status status = Driver::call_locked(driver.table().device_count, &count);
  driver.check(status, "device_count");
  if (count == kUnwritten) {
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        "device_count of the driver '" + driver.name() +
            "' returned OK without a count, so Graft does not use the driver. Ask its vendor.");
  }
  if (count > kMostOrdinals) {
    throw Error(GRAFT_INVALID_ARGUMENT, "The driver '" + driver.name() + "' claims " +
                                            std::to_string(count) +
                                            " devices, so Graft does not use it. Ask its vendor.");
  }
  return count;
}

}  // namespace

std::vector<DeviceDescription> list_devices(Driver& driver, std::vector<std::string>& refused) {
  const uint32_t count = count_devices(driver);
  std::vector<DeviceDescription> devices;
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    try {
      devices.push_back({-1, &driver, ordinal, read_properties(driver, ordinal)});
    } catch (const Error& error) {
      refused.emplace_back(error.what());
    }
  }
  return devices;
}

}  // namespace graft
