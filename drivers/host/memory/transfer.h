// drivers/host/memory/transfer.h: copies and fills.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_TRANSFER_H_
#define GRAFT_DRIVERS_HOST_MEMORY_TRANSFER_H_

#include "graft/driver.h"

namespace graft::host {

// Slots of the table, see driver.h.
struct TransferSlots {
  static graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                           uint32_t kind, uint32_t tag);
  static graft_status copy_strided(graft_stream stream, const graft_strided_copy* copy,
                                   uint32_t tag);
  static graft_status fill(graft_stream stream, graft_address to, uint64_t bytes,
                           const void* pattern, uint32_t pattern_bytes, uint32_t tag);
  static graft_status peer_copy(graft_stream stream, graft_address to, graft_device from_device,
                                graft_address from, uint64_t bytes, uint32_t tag);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_TRANSFER_H_
