/* driver/stream.c: streams, which are the chip's queues.
 *
 * For the real chip: your SDK's command queue. Graft waits by the slots with a timeout, so that
 * Ctrl-C ends each wait; if your SDK only has a wait without timeout, leave them out, and Graft
 * asks stream_query again and again. If the chip has priorities, state their range in
 * device_properties. */
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

graft_status stream_create(graft_device device, int32_t priority, graft_stream* out) {
  (void)priority;
  graft_stream stream = malloc(sizeof *stream);
  if (stream == NULL) return failed(GRAFT_OUT_OF_MEMORY, "stream_create: no host memory is left");
  stream->device = device;
  const graft_status status =
      status_of(chip_queue_create(device->chip, &stream->queue), "stream_create");
  if (status != GRAFT_OK) {
    free(stream);
    return status;
  }
  *out = stream;
  return GRAFT_OK;
}

graft_status stream_destroy(graft_stream stream) {
  chip_queue_destroy(stream->queue);
  free(stream);
  return GRAFT_OK;
}

graft_status stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  if (chip_queue_wait(stream->queue, timeout_ns) == CHIP_BUSY) return GRAFT_BUSY;
  const chip_error error = chip_queue_take_error(stream->queue);
  return late_status(&error);
}

graft_status stream_synchronize(graft_stream stream) {
  return stream_synchronize_within(stream, CHIP_FOREVER);
}

graft_status stream_query(graft_stream stream) { return stream_synchronize_within(stream, 0); }

graft_status stream_error(graft_stream stream, uint32_t* out_tag, char* out_text, size_t capacity) {
  const chip_error error = chip_queue_last_error(stream->queue);
  *out_tag = error.label;
  if (capacity != 0) snprintf(out_text, capacity, "%s", error.text);
  return GRAFT_OK;
}

graft_status host_callback(graft_stream stream, void (*function)(void* context), void* context) {
  return status_of(chip_call(stream->queue, function, context), "host_callback");
}
