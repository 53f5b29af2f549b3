// src/runtime/topology/device_identity.h: which device of which machine a driver's device is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"

namespace graft {

// Empty where the driver does not know it.
struct DeviceIdentity {
  struct Pci {
    uint32_t domain, bus, device, function;
  };

  std::optional<std::array<uint8_t, 16>> uuid;
  std::optional<Pci> pci;
  std::string driver_version;  // of the vendor's software
  std::string firmware_version;
};

// Asks the driver, without opening the device. All empty if it lacks device_identity. Throws Error
// with what the driver said if the slot fails, throws or writes past the struct. Any thread.
GRAFT_EXPORT DeviceIdentity read_identity(const Driver& driver, uint32_t ordinal);

}  // namespace graft
