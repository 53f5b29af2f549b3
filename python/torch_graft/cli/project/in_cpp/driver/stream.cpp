// driver/stream.cpp: streams, which are the chip's queues.
//
// For the real chip: your SDK's command queue. Graft waits by the slots with a timeout, so that
// Ctrl-C ends each wait; if your SDK only has a wait without timeout, leave them out, and Graft
// asks stream_query again and again. If the chip has priorities, state their range in
// device_properties. If your SDK reports errors aside from its queues, graft/driver_failure.h keeps
// them until stream_synchronize.
#include <memory>

#include "handle.h"
#include "slots.h"

namespace acme_driver {

graft_status StreamSlots::stream_create(graft_device device, int32_t, graft_stream* out) {
  auto stream = std::make_unique<graft_stream_s>();
  stream->device = device;
  chip_queue* queue = nullptr;
  const graft_status status =
      status_of(chip_queue_create(device->handle.get(), &queue), "stream_create");
  if (status != GRAFT_OK) return status;
  stream->queue.reset(queue);
  *out = stream.release();
  return GRAFT_OK;
}

graft_status StreamSlots::stream_destroy(graft_stream stream) {
  delete stream;
  return GRAFT_OK;
}

graft_status StreamSlots::stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  if (chip_queue_wait(stream->queue.get(), timeout_ns) == CHIP_BUSY) return GRAFT_BUSY;
  return late_status(chip_queue_take_error(stream->queue.get()));
}

graft_status StreamSlots::stream_synchronize(graft_stream stream) {
  return stream_synchronize_within(stream, CHIP_FOREVER);
}

graft_status StreamSlots::stream_query(graft_stream stream) {
  return stream_synchronize_within(stream, 0);
}

graft_status StreamSlots::stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                       size_t capacity) {
  const chip_error error = chip_queue_last_error(stream->queue.get());
  *out_tag = error.label;
  graft::copy_text(error.text, out_text, capacity);
  return GRAFT_OK;
}

graft_status StreamSlots::host_callback(graft_stream stream, void (*function)(void* context),
                                        void* context) {
  return status_of(chip_call(stream->queue.get(), function, context), "host_callback");
}

}  // namespace acme_driver
