// src/codegen/ir/device_limits.h: what a kernel takes, beside what a device has.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "runtime/driver/export.h"

namespace graft {

// Throws Error UNSUPPORTED, naming device and kernel, where the kernel takes more local memory for
// a group or more arguments than the device has, or reads or writes a dtype that the device's
// kernels do not know. label: how messages call the device.
GRAFT_EXPORT void check_limits(const ir::Kernel& kernel, const std::string& key,
                               const graft_device_properties& has, const std::string& label);

}  // namespace graft
