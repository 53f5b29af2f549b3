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

// "" for a queue that can be a stream of the device. OpenCL finds out what is no queue at all.
std::string wrong_queue(graft_device device, cl_command_queue queue) {
  cl_context context = nullptr;
  cl_device_id owner = nullptr;
  cl_command_queue_properties order = 0;
  const auto ask = [&](cl_command_queue_info what, size_t bytes, void* to) {
    return cl().GetCommandQueueInfo(queue, what, bytes, to, nullptr) == CL_SUCCESS;
  };
  if (!ask(CL_QUEUE_CONTEXT, sizeof(cl_context), &context) ||
      !ask(CL_QUEUE_DEVICE, sizeof(cl_device_id), &owner) ||
      !ask(CL_QUEUE_PROPERTIES, sizeof order, &order))
    return "the handle is no cl_command_queue";
  if (owner != device->listed.device || context != device->context)
    return "the cl_command_queue is of another device or context: make it in the context of a "
           "queue that stream_native_handle gave";
  if ((order & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
    return "the cl_command_queue runs its commands out of order";
  return "";
}

graft_stream stream_of(graft_device device, cl_command_queue handle) {
  auto stream = std::make_unique<graft_stream_s>();
  stream->device = device;
  stream->queue = std::make_shared<Queue>(device, stream.get(), handle);
  return stream.release();
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
  cl_int code = CL_SUCCESS;
  const cl_command_queue handle = make_queue(device, priority, &code);
  if (code != CL_SUCCESS) return device->failed(code, "stream_create", GRAFT_INTERNAL);
  *out = stream_of(device, handle);
  if (!settings().thread) (*out)->queue->backlog.keep_none();
  return GRAFT_OK;
}

graft_status StreamSlots::stream_wrap(graft_device device, uint64_t native_handle,
                                      graft_stream* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr || native_handle == 0)
    return fail(GRAFT_INVALID_ARGUMENT, "stream_wrap: no handle or no out pointer given");
  auto* const queue = reinterpret_cast<cl_command_queue>(native_handle);
  const std::string problem = wrong_queue(device, queue);
  if (!problem.empty()) return fail(GRAFT_INVALID_ARGUMENT, "stream_wrap: " + problem);
  const cl_int code = cl().RetainCommandQueue(queue);
  if (code != CL_SUCCESS) return device->failed(code, "stream_wrap", GRAFT_INVALID_ARGUMENT);
  *out = stream_of(device, queue);
  (*out)->queue->backlog.keep_none();
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
