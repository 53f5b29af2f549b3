// driver/event.cpp: events, each of which holds the fence of its latest mark.
//
// For the real chip: your SDK's fences or events. Those that can be recorded again need no exchange
// of fences; an event that a stream waits for may be destroyed before the wait is over.
#include <mutex>
#include <utility>

#include "handle.h"
#include "slots.h"

namespace acme_driver {

graft_status EventSlots::event_create(graft_device, uint32_t, graft_event* out) {
  *out = new graft_event_s;
  return GRAFT_OK;
}

graft_status EventSlots::event_destroy(graft_event event) {
  delete event;
  return GRAFT_OK;
}

graft_status EventSlots::event_record(graft_event event, graft_stream stream) {
  chip_fence* made = nullptr;
  chip_status status = chip_fence_create(&made);
  if (status != CHIP_OK) return status_of(status, "event_record");
  Fence fence(made);
  status = chip_signal(stream->queue.get(), made);
  if (status != CHIP_OK) return status_of(status, "event_record");
  const std::lock_guard lock(event->mutex);
  event->fence = std::move(fence);
  return GRAFT_OK;
}

graft_status EventSlots::event_query(graft_event event) {
  const Fence fence = event->current();
  if (fence.get() == nullptr) return GRAFT_OK;
  return status_of(chip_fence_wait(fence.get(), 0), "event_query");
}

graft_status EventSlots::event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  const Fence fence = event->current();
  if (fence.get() == nullptr) return GRAFT_OK;
  if (chip_fence_wait(fence.get(), timeout_ns) == CHIP_BUSY) return GRAFT_BUSY;
  return late_status(chip_fence_take_error(fence.get()));
}

graft_status EventSlots::event_synchronize(graft_event event) {
  return event_synchronize_within(event, CHIP_FOREVER);
}

graft_status EventSlots::event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  const Fence from = start->current(), to = end->current();
  if (from.get() == nullptr || to.get() == nullptr) {
    return graft::fail(GRAFT_INVALID_ARGUMENT, "event_elapsed: record both events first");
  }
  if (chip_fence_wait(from.get(), 0) == CHIP_BUSY || chip_fence_wait(to.get(), 0) == CHIP_BUSY) {
    return GRAFT_BUSY;
  }
  *out_ns = chip_fence_time(to.get()) - chip_fence_time(from.get());
  return GRAFT_OK;
}

graft_status EventSlots::stream_wait_event(graft_stream stream, graft_event event) {
  const Fence fence = event->current();
  if (fence.get() == nullptr) return GRAFT_OK;
  return status_of(chip_await(stream->queue.get(), fence.get()), "stream_wait_event");
}

}  // namespace acme_driver
