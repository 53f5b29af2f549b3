// drivers/veda/event.cpp: points in a stream that others wait for.
#include "event.h"

#include "device.h"
#include "graft/driver_slot.h"
#include "stream.h"

namespace graft::veda {
namespace {

std::shared_ptr<Mark> current_mark(graft_event event) {
  std::lock_guard lock(event->mutex);
  return event->mark;
}

graft_status check_event(graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no event given");
  return check_device(event->device);
}

}  // namespace

graft_status EventSlots::event_create(graft_device device, uint32_t, graft_event* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_create: no out pointer given");
  *out = new graft_event_s{device, {}, {}};
  return GRAFT_OK;
}

graft_status EventSlots::event_destroy(graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_destroy: no event given");
  delete event;
  return GRAFT_OK;
}

graft_status EventSlots::event_record(graft_event event, graft_stream stream) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (event->device != stream->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_record: event and stream belong to two devices");
  }
  auto mark = std::make_shared<Mark>(stream->queue.failure);
  {
    std::lock_guard lock(event->mutex);
    event->mark = mark;
  }
  stream->queue.push(std::move(mark));
  return GRAFT_OK;
}

graft_status EventSlots::event_query(graft_event event) {
  if (graft_status status = check_event(event); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  return mark == nullptr || mark->is_passed() ? GRAFT_OK : GRAFT_BUSY;
}

graft_status EventSlots::event_synchronize(graft_event event) {
  return event_synchronize_within(event, kForever);
}

graft_status EventSlots::event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_synchronize: no event given");
  if (forked()) return check_device(event->device);
  const std::shared_ptr<Mark> mark = current_mark(event);
  if (mark == nullptr) return check_device(event->device);
  if (!mark->wait(timeout_ns)) return GRAFT_BUSY;
  const bool failed = mark->error().status != GRAFT_OK;
  const graft_status status = failed ? mark->source->take() : GRAFT_OK;
  return status != GRAFT_OK ? status : check_device(event->device);
}

graft_status EventSlots::event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  if (start == nullptr || end == nullptr || out_ns == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: an event or the out pointer is missing");
  }
  if (graft_status status = check_device(start->device); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> from = current_mark(start), to = current_mark(end);
  if (from == nullptr || to == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: both events must be recorded first");
  }
  if (!from->is_passed() || !to->is_passed()) return GRAFT_BUSY;
  *out_ns = to->time_ns() - from->time_ns();
  return GRAFT_OK;
}

graft_status EventSlots::stream_wait_event(graft_stream stream, graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "stream_wait_event: no event given");
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  const std::shared_ptr<Mark> mark = current_mark(event);
  const std::shared_ptr<Failure>& failure = stream->queue.failure;
  if (mark == nullptr || mark->source == failure) return GRAFT_OK;
  if (mark->is_passed() && mark->error().status == GRAFT_OK) return GRAFT_OK;
  stream->queue.push([mark, failure] {
    mark->wait(kForever);
    if (mark->error().status != GRAFT_OK) failure->set(mark->error());
  });
  return GRAFT_OK;
}

}  // namespace graft::veda
