// src/runtime/stream/peer_copy.h: copies between devices through host memory.
#pragma once

#include <cstdint>

#include "graft/driver.h"

namespace graft {

class Device;
class Stream;

// Copies bytes of another device's memory, piece by piece through pinned memory, and blocks until
// they have left the other device. The commands of stream write them. Throws as both streams do.
void copy_through_host(Stream& stream, graft_address to, Device& from_device, graft_address from,
                       uint64_t bytes);

}  // namespace graft
