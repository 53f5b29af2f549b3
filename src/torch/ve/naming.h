// src/torch/ve/naming.h: errors of the device behind the slot, told of the slot's device.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <string>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// text with the names of devices of the slot in the place of the names of those behind them, and
// torch.ve in the place of the module of kDeviceType.
std::string renamed(std::string text, c10::ArrayRef<c10::Device> devices);

// Throws an error of the same class and backtrace whose text is renamed.
[[noreturn]] void throw_renamed(const c10::Error& error, c10::ArrayRef<c10::Device> devices);

}  // namespace graft::binding::ve
