// drivers/opencl/stream/event.cpp: points in a stream that others wait for.
#include "event.h"

#include <utility>

#include "graft/driver_slot.h"
#include "platform/device.h"
#include "settings.h"
#include "stream.h"

namespace graft::opencl {
namespace {

std::shared_ptr<Mark> current_mark(graft_event event) {
  std::lock_guard lock(event->mutex);
  return event->mark;
}

graft_status check_event(graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no event given");
  return check_device(event->device);
}

// Waits for the mark and takes the error that it stands behind.
graft_status finish(graft_event event, const Mark& mark) {
  mark.wait();
  mark.queue->reap();
  if (graft_status status = check_device(event->device); status != GRAFT_OK) return status;
  return mark.queue->failure.take(mark.number);
}

graft_status end_of(const Mark& mark, cl_ulong* out_ns) {
  if (mark.event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "the event is not timed");
  const cl_int code = cl().GetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_END,
                                                 sizeof *out_ns, out_ns, nullptr);
  if (code == CL_SUCCESS) return GRAFT_OK;
  return mark.queue->device->failed(code, "event_elapsed", GRAFT_UNSUPPORTED);
}

}  // namespace

graft_status EventSlots::event_create(graft_device device, uint32_t timed, graft_event* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_create: no out pointer given");
  *out = new graft_event_s{device, timed != 0, {}, {}};
  return GRAFT_OK;
}

graft_status EventSlots::event_destroy(graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_destroy: no event given");
  if (!forked()) delete event;
  return GRAFT_OK;
}

graft_status EventSlots::event_record(graft_event event, graft_stream stream) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (event->device != stream->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_record: event and stream belong to two devices");
  }
  std::shared_ptr<Mark> mark;
  if (graft_status status = stream->queue->mark(event->timed, &mark); status != GRAFT_OK) {
    return status;
  }
  std::lock_guard lock(event->mutex);
  event->mark.swap(mark);
  return GRAFT_OK;
}

graft_status EventSlots::event_query(graft_event event) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  return mark == nullptr ? GRAFT_OK : mark->query();
}

graft_status EventSlots::event_synchronize(graft_event event) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  return mark == nullptr ? GRAFT_OK : finish(event, *mark);
}

graft_status EventSlots::event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  if (mark == nullptr) return GRAFT_OK;
  return mark->wait_within(timeout_ns) ? finish(event, *mark) : GRAFT_BUSY;
}

graft_status EventSlots::event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  if (graft_status status = check_event(start); status != GRAFT_OK) return status;
  if (end == nullptr || out_ns == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: an event or the out pointer is missing");
  }
  if (!settings().profiling) {
    return fail(GRAFT_UNSUPPORTED, "event_elapsed: GRAFT_OPENCL_PROFILING=0 switches times off");
  }
  const std::shared_ptr<Mark> from = current_mark(start), to = current_mark(end);
  if (from == nullptr || to == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: both events must be recorded first");
  }
  if (from->query() != GRAFT_OK || to->query() != GRAFT_OK) return GRAFT_BUSY;
  cl_ulong first = 0, last = 0;
  if (graft_status status = end_of(*from, &first); status != GRAFT_OK) return status;
  if (graft_status status = end_of(*to, &last); status != GRAFT_OK) return status;
  *out_ns = int64_t(last - first);
  return GRAFT_OK;
}

graft_status EventSlots::stream_wait_event(graft_stream stream, graft_event event) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  Queue& queue = *stream->queue;
  if (mark == nullptr || mark->queue.get() == &queue) return GRAFT_OK;
  if (mark->query() == GRAFT_OK) {
    LateError error = mark->error();
    error.number = 0;  // it is older than any command of this queue
    if (error.status != GRAFT_OK) queue.failure.set(error);
    return GRAFT_OK;
  }
  // OpenCL's events never leave their context, and each device has one of its own.
  if (event->device != stream->device) {
    return stream->callbacks.enqueue(
        queue, [mark] { mark->wait(); }, mark);
  }
  queue.backlog.drain();
  cl_event barrier = nullptr;
  const cl_int code = cl().EnqueueBarrierWithWaitList(queue.handle, 1, &mark->event, &barrier);
  if (code != CL_SUCCESS) {
    return stream->device->failed(code, "stream_wait_event", GRAFT_INTERNAL);
  }
  queue.note(barrier, 0, false, mark);
  return GRAFT_OK;
}

}  // namespace graft::opencl
