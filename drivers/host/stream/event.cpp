// drivers/host/stream/event.cpp: points in a stream that others wait for.
#include "event.h"

#include <chrono>

#include "device.h"
#include "graft/driver_slot.h"
#include "stream.h"

namespace graft::host {
namespace {

std::shared_ptr<Mark> current_mark(graft_event event) {
  std::lock_guard lock(event->mutex);
  return event->mark;
}

// A mark that nobody else holds is used again: recording on an idle stream allocates nothing.
std::shared_ptr<Mark> fresh_mark(graft_event event, const std::shared_ptr<Failure>& source) {
  std::lock_guard lock(event->mutex);
  std::shared_ptr<Mark>& mark = event->mark;
  if (mark == nullptr || mark.use_count() > 1 || !mark->is_passed()) {
    mark = std::make_shared<Mark>();
  } else {
    mark->passed.store(0, std::memory_order_relaxed);
    if (mark->error.status != GRAFT_OK) mark->error = {};
  }
  if (mark->source != source) mark->source = source;
  return mark;
}

}  // namespace

void Mark::pass(int64_t simulated_ns) {
  time_ns = simulated()
                ? simulated_ns
                : std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  if (source->any()) error = source->peek();
  passed.set(1);
}

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
  if (event == nullptr || stream == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_record: no event or stream given");
  }
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  if (event->device != stream->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_record: event and stream belong to two devices");
  }
  std::shared_ptr<Mark> mark = fresh_mark(event, stream->failure);
  const int64_t issued = simulated() ? host_time() : 0;
  if (stream->queue.idle()) {
    mark->pass(stream->clock.at_least(issued));
    return GRAFT_OK;
  }
  // Whoever sees the mark passed finds the stream idle, though its worker is still on its way back.
  stream->push(0, true, [mark = std::move(mark), stream, issued] {
    stream->queue.announce();
    mark->pass(stream->clock.at_least(issued));
    return Outcome{};
  });
  return GRAFT_OK;
}

graft_status EventSlots::event_query(graft_event event) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_query: no event given");
  if (graft_status status = check_device(event->device); status != GRAFT_OK) return status;
  std::lock_guard lock(event->mutex);
  return event->mark == nullptr || event->mark->is_passed() ? GRAFT_OK : GRAFT_BUSY;
}

graft_status EventSlots::event_synchronize(graft_event event) {
  return event_synchronize_within(event, SleepLimit::kForever);
}

graft_status EventSlots::event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  if (event == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "event_synchronize: no event given");
  if (graft_status status = check_device(event->device); status != GRAFT_OK) return status;
  std::shared_ptr<Mark> mark = current_mark(event);
  if (mark == nullptr) return GRAFT_OK;
  if (!mark->wait(timeout_ns)) return GRAFT_BUSY;
  if (graft_status status = check_device(event->device); status != GRAFT_OK) return status;
  if (simulated()) host_waited(mark->time_ns);
  return mark->error.status == GRAFT_OK ? GRAFT_OK : mark->source->take();
}

graft_status EventSlots::event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  if (start == nullptr || end == nullptr || out_ns == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: an event or the out pointer is missing");
  }
  if (graft_status status = check_device(start->device); status != GRAFT_OK) return status;
  std::shared_ptr<Mark> from = current_mark(start), to = current_mark(end);
  if (from == nullptr || to == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: both events must be recorded first");
  }
  if (!from->is_passed() || !to->is_passed()) return GRAFT_BUSY;
  *out_ns = to->time_ns - from->time_ns;
  return GRAFT_OK;
}

graft_status EventSlots::stream_wait_event(graft_stream stream, graft_event event) {
  if (event == nullptr || stream == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "stream_wait_event: no event or stream given");
  }
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  std::shared_ptr<Mark> mark = current_mark(event);
  if (mark == nullptr || mark->source == stream->failure) return GRAFT_OK;
  if (mark->is_passed() && mark->error.status == GRAFT_OK && !simulated()) return GRAFT_OK;
  stream->push(0, true, [mark, stream] {
    mark->wait();
    if (simulated()) stream->clock.reach(mark->time_ns);
    if (mark->error.status != GRAFT_OK) stream->failure->set(mark->error);
    return Outcome{};
  });
  return GRAFT_OK;
}

}  // namespace graft::host
