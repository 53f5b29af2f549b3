// src/torch/ve/naming.h: errors of the device behind the slot, told of the slot's device.
#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// text with the name of a device of the slot in the place of the name of the one behind it, and
// torch.ve in the place of the module of kDeviceType.
std::string renamed(std::string text, c10::DeviceIndex index);

// Throws an error of the same class and backtrace whose text is renamed.
[[noreturn]] void throw_renamed(const c10::Error& error, c10::DeviceIndex index);

}  // namespace graft::binding::ve
