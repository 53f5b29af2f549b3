// src/runtime/platform/peer_copy.h: copies from one device to another.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

class Device;
class Stream;

// Queues a copy on stream, one of to_device's, which waits for what wrote the memory. Without the
// driver's peer_copy, and where device_link says so, the bytes go through pinned host memory, and
// the call blocks until they have left the other device. Throws as the streams do.
GRAFT_EXPORT void peer_copy(Stream& stream, Device& to_device, graft_address to,
                            Device& from_device, graft_address from, uint64_t bytes);

}  // namespace graft
