// src/runtime/platform/device_reset.h: a new device in the place of a lost one.
#pragma once

#include <memory>

#include "runtime/platform/device.h"

namespace graft {

// Closes the lost device, whose handles are gone then whatever comes of it, calls device_reset and
// opens it again, with streams of the same ids and priorities. Threads that call slots wait
// meanwhile. Throws Error as Platform::reset does.
std::unique_ptr<Device> reopened(Device& lost);

}  // namespace graft
