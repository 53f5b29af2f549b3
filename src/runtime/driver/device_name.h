// src/runtime/driver/device_name.h: what the device type is called in messages.
#pragma once

#include <string>

#include "runtime/driver/export.h"

namespace graft {

// Devices are called name:0, name:1, ... from now on; "graft" unless told otherwise. Call it before
// any device is opened: an open device keeps its name. Not thread-safe against itself.
GRAFT_EXPORT void set_device_type_name(const std::string& name);

// The name that was set: "graft", or another.
const std::string& device_type_name();

// Devices from this index on are those that torch.device("ve") alone has.
inline constexpr int kFirstCarriedIndex = 64;
inline constexpr int kMostDevices = 127;  // what torch can count: indices are below

// "graft:0" for 0, or under the name that was set; "ve:0" for kFirstCarriedIndex.
std::string device_label(int index);

}  // namespace graft
