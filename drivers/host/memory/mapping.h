// drivers/host/memory/mapping.h: addresses that get their memory later.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_MAPPING_H_
#define GRAFT_DRIVERS_HOST_MEMORY_MAPPING_H_

#include "graft/driver.h"

namespace graft::host {

// Slots of the table, see driver.h.
struct MappingSlots {
  static graft_status memory_reserve(graft_device device, uint64_t bytes, graft_address* out);
  static graft_status memory_map(graft_device device, graft_address address, uint64_t bytes);
  static graft_status memory_unmap(graft_device device, graft_address address, uint64_t bytes);
  static graft_status memory_unreserve(graft_device device, graft_address address);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_MAPPING_H_
