// drivers/opencl/memory/transfer.h: copies and fills.
#ifndef GRAFT_DRIVERS_OPENCL_MEMORY_TRANSFER_H_
#define GRAFT_DRIVERS_OPENCL_MEMORY_TRANSFER_H_

#include "graft/driver.h"
#include "platform/device.h"
#include "stream/queue.h"

namespace graft::opencl {

// What can be said without OpenCL against a fill's pattern, and against a range of a copy on the
// device or a fill, which may be empty; else OK. Thread-safe.
graft_status check_pattern(const void* pattern, uint64_t pattern_bytes);
graft_status check_range(graft_device device, graft_address address, uint64_t bytes);

// Enqueue what was checked. Calls for one queue are serialised, as all of its commands are.
graft_status enqueue_copy(Queue& queue, graft_address to, graft_address from, uint64_t bytes,
                          uint32_t tag);
graft_status enqueue_fill(Queue& queue, graft_address to, uint64_t bytes, const void* pattern,
                          uint32_t pattern_bytes, uint32_t tag);

// Slots of the table, see driver.h.
struct TransferSlots {
  static graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                           uint32_t kind, uint32_t tag);
  static graft_status fill(graft_stream stream, graft_address to, uint64_t bytes,
                           const void* pattern, uint32_t pattern_bytes, uint32_t tag);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_MEMORY_TRANSFER_H_
