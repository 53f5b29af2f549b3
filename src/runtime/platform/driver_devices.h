// src/runtime/platform/driver_devices.h: asks a driver for its devices.
#pragma once

#include <string>
#include <vector>

#include "runtime/driver/device_order.h"
#include "runtime/driver/library.h"

namespace graft {

// The driver's devices, without an index. refused gets the reason for each device whose properties
// are invalid. Throws Error if the driver cannot say how many devices it has. Opens none.
std::vector<DeviceDescription> list_devices(Driver& driver, std::vector<std::string>& refused);

}  // namespace graft
