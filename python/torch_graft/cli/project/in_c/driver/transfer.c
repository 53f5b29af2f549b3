/* driver/transfer.c: copies and fills, queued on a stream.
 *
 * For the real chip: your SDK's asynchronous copies. If it cannot fill with patterns of 2 to 16
 * bytes, launch a kernel of yours that does. The tag must come back from stream_error if the
 * command fails: if your SDK takes no label, remember the tags of the queued commands. */
#include "driver.h"

graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                  uint32_t tag) {
  if (bytes == 0) return GRAFT_OK;
  chip_queue* queue = stream->queue;
  switch (kind) {
    case GRAFT_HOST_TO_DEVICE:
      return status_of(chip_copy_in(queue, to, (const void*)(uintptr_t)from, bytes, tag), "copy");
    case GRAFT_DEVICE_TO_HOST:
      return status_of(chip_copy_out(queue, (void*)(uintptr_t)to, from, bytes, tag), "copy");
    case GRAFT_DEVICE_TO_DEVICE:
      return status_of(chip_copy_within(queue, to, from, bytes, tag), "copy");
    default:
      return failed(GRAFT_INVALID_ARGUMENT, "copy: kind %u is not a graft_copy_kind", kind);
  }
}

graft_status fill(graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, uint32_t tag) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return failed(GRAFT_INVALID_ARGUMENT, "fill: a pattern has 1, 2, 4, 8 or 16 bytes, not %u",
                  pattern_bytes);
  }
  if (bytes == 0) return GRAFT_OK;
  return status_of(chip_fill(stream->queue, to, bytes, pattern, pattern_bytes, tag), "fill");
}
