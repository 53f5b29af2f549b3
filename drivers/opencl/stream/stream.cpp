// drivers/opencl/stream/stream.cpp: streams, which are in-order command queues.
#include "stream.h"

#include <string>

#include "graft/driver_slot.h"
#include "settings.h"

namespace graft::opencl {
namespace {

cl_command_queue make_queue(graft_device device, int32_t priority, cl_int* code) {
  const cl_command_queue_properties timed =
      settings().profiling ? cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE} : 0;
  if (priority != 0) {
    const cl_queue_properties wish =
        priority < 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, timed, CL_QUEUE_PRIORITY_KHR,
                                              wish, 0};
    const cl_command_queue queue = cl().CreateCommandQueueWithProperties(
        device->context, device->listed.device, properties, code);
    if (*code == CL_SUCCESS) return queue;
  }
  return cl().CreateCommandQueue(device->context, device->listed.device, timed, code);
}

}  // namespace

graft_status check_stream(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no stream given");
  return check_device(stream->device);
}

graft_status StreamSlots::stream_create(graft_device device, int32_t priority, graft_stream* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_create: no out pointer given");
  const graft_device_properties& limits = device->listed.capabilities.properties;
  if (priority < limits.priority_highest || priority > limits.priority_lowest) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "stream_create: priority " + std::to_string(priority) + " is not between " +
                    std::to_string(limits.priority_highest) + " (first) and " +
                    std::to_string(limits.priority_lowest) + " (last)");
  }
  auto stream = std::make_unique<graft_stream_s>();
  cl_int code = CL_SUCCESS;
  const cl_command_queue handle = make_queue(device, priority, &code);
  if (code != CL_SUCCESS) return device->failed(code, "stream_create", GRAFT_INTERNAL);
  stream->device = device;
  stream->queue = std::make_shared<Queue>(device, stream.get(), handle);
  if (!settings().thread) stream->queue->backlog.keep_none();
  *out = stream.release();
  return GRAFT_OK;
}

graft_status StreamSlots::stream_destroy(graft_stream stream) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_destroy: no stream given");
  if (forked()) return GRAFT_OK;
  if (!stream->device->lost.load(std::memory_order_relaxed)) stream->queue->finish();
  stream->queue->backlog.stop();
  delete stream;
  return GRAFT_OK;
}

graft_status StreamSlots::stream_synchronize(graft_stream stream) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (graft_status status = stream->queue->finish(); status != GRAFT_OK) return status;
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  return stream->queue->failure.take();
}

graft_status StreamSlots::stream_synchronize_within(graft_stream stream, uint64_t timeout_ns) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (graft_status status = stream->queue->finish_within(timeout_ns); status != GRAFT_OK) {
    return status;
  }
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  return stream->queue->failure.take();
}

graft_status StreamSlots::stream_query(graft_stream stream) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  stream->queue->backlog.drain();
  if (!stream->queue->reap()) {
    stream->queue->flush();
    return GRAFT_BUSY;
  }
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  return stream->queue->failure.take();
}

graft_status StreamSlots::stream_native_handle(graft_stream stream, uint64_t* out_handle) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (out_handle == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_native_handle: no out pointer given");
  }
  stream->queue->backlog.keep_none();
  *out_handle = reinterpret_cast<uintptr_t>(stream->queue->handle);
  return GRAFT_OK;
}

graft_status StreamSlots::stream_error(graft_stream stream, uint32_t* out_tag, char* out_text,
                                       size_t capacity) {
  if (stream == nullptr || out_tag == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_error: no stream or no out pointer given");
  }
  const LateError error = stream->queue->failure.taken();
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
  return stream->callbacks.enqueue(*stream->queue, [function, context] { function(context); });
}

}  // namespace graft::opencl
