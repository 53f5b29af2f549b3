// driver/transfer.cpp: copies and fills, queued on a stream.
//
// For the real chip: your SDK's asynchronous copies. If it cannot fill with patterns of 2 to 16
// bytes, launch a kernel of yours that does. The tag must come back from stream_error if the
// command fails: if your SDK takes no label, remember the tags of the queued commands.
#include <string>

#include "handle.h"
#include "slots.h"

namespace acme_driver {

graft_status TransferSlots::copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                                 uint32_t kind, uint32_t tag) {
  if (bytes == 0) return GRAFT_OK;
  chip_queue* const queue = stream->queue.get();
  switch (kind) {
    case GRAFT_HOST_TO_DEVICE:
      return status_of(chip_copy_in(queue, to, reinterpret_cast<const void*>(from), bytes, tag),
                       "copy");
    case GRAFT_DEVICE_TO_HOST:
      return status_of(chip_copy_out(queue, reinterpret_cast<void*>(to), from, bytes, tag), "copy");
    case GRAFT_DEVICE_TO_DEVICE:
      return status_of(chip_copy_within(queue, to, from, bytes, tag), "copy");
    default:
      return graft::fail(GRAFT_INVALID_ARGUMENT,
                         "copy: kind " + std::to_string(kind) + " is not a graft_copy_kind");
  }
}

graft_status TransferSlots::fill(graft_stream stream, graft_address to, uint64_t bytes,
                                 const void* pattern, uint32_t pattern_bytes, uint32_t tag) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return graft::fail(GRAFT_INVALID_ARGUMENT, "fill: a pattern has 1, 2, 4, 8 or 16 bytes, not " +
                                                   std::to_string(pattern_bytes));
  }
  if (bytes == 0) return GRAFT_OK;
  return status_of(chip_fill(stream->queue.get(), to, bytes, pattern, pattern_bytes, tag), "fill");
}

}  // namespace acme_driver
