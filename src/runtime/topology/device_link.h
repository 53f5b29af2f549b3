// src/runtime/topology/device_link.h: how bytes get from one device of a driver to another.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/driver/library.h"

namespace graft {

struct DeviceLink {
  graft_link_kind kind = GRAFT_LINK_HOST;
  uint64_t bytes_per_second = 0;  // in one direction; 0 if unknown
};

// Asks the driver, without opening the devices. If it lacks device_link, a bus if it has peer_copy,
// else host memory; host memory also for a kind that this Graft does not know. Throws Error with
// what the driver said if the slot fails or writes past the struct. Any thread.
GRAFT_EXPORT DeviceLink read_link(const Driver& driver, uint32_t from, uint32_t to);

// The graft_link_kind in messages ("direct link"), null for another number. Static storage.
GRAFT_EXPORT const char* link_name(uint32_t kind);

}  // namespace graft
