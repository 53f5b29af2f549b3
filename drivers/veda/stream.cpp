// drivers/veda/stream.cpp: Graft's streams, which take turns on VEDA's.
#include "stream.h"

#include <string>

#include "graft/driver_slot.h"

namespace graft::veda {
namespace {

// Of an idle stream. The error that lost the device comes first, because it has a tag.
graft_status outcome(graft_stream stream) {
  const graft_status status = stream->queue.failure->take();
  return status != GRAFT_OK ? status : check_device(stream->device);
}

}  // namespace

graft_status check_stream(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no stream given");
  return check_device(stream->device);
}

graft_status StreamSlots::stream_create(graft_device device, int32_t priority, graft_stream* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_create: no out pointer given");
  if (priority != 0) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "stream_create: priority " + std::to_string(priority) +
                    " given, but VEDA's streams have no priorities: give 0");
  }
  *out = new graft_stream_s(device);
  return GRAFT_OK;
}

// A forked child has no thread that could be joined.
graft_status StreamSlots::stream_destroy(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_destroy: no stream given");
  if (!forked()) delete stream;
  return GRAFT_OK;
}

graft_status StreamSlots::stream_synchronize(graft_stream stream) {
  return stream_synchronize_within(stream, kForever);
}

graft_status StreamSlots::stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_synchronize: no stream given");
  if (forked()) return check_device(stream->device);
  if (!stream->queue.wait(timeout_ns)) return GRAFT_BUSY;
  return outcome(stream);
}

graft_status StreamSlots::stream_query(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_query: no stream given");
  if (forked()) return check_device(stream->device);
  return stream->queue.is_idle() ? outcome(stream) : GRAFT_BUSY;
}

graft_status StreamSlots::stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                       size_t capacity) {
  if (stream == nullptr || out_tag == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_error: no stream or no out pointer given");
  }
  const LateError error = stream->queue.failure->taken();
  *out_tag = error.tag;
  copy_text(error.text, out_text, capacity);
  return GRAFT_OK;
}

graft_status StreamSlots::host_callback(graft_stream stream, void (*function)(void* context),
                                        void* context) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (function == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "host_callback: no function given");
  }
  stream->queue.push([function, context] { function(context); });
  return GRAFT_OK;
}

}  // namespace graft::veda
