/* driver/event.c: events, each of which holds the fence of its latest mark.
 *
 * For the real chip: your SDK's fences or events. Those that can be recorded again need no
 * exchange of fences; an event that a stream waits for may be destroyed before the wait is over. */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

struct graft_event_s {
  pthread_mutex_t mutex; /* guards what follows */
  chip_fence* fence;     /* NULL until the event is recorded */
};

graft_status event_create(graft_device device, uint32_t timed, graft_event* out) {
  (void)device, (void)timed;
  graft_event event = malloc(sizeof *event);
  if (event == NULL) return failed(GRAFT_OUT_OF_MEMORY, "event_create: no host memory is left");
  pthread_mutex_init(&event->mutex, NULL);
  event->fence = NULL;
  *out = event;
  return GRAFT_OK;
}

graft_status event_destroy(graft_event event) {
  if (event->fence != NULL) chip_fence_release(event->fence);
  pthread_mutex_destroy(&event->mutex);
  free(event);
  return GRAFT_OK;
}

/* The event's fence, which the caller releases; NULL if the event was never recorded. */
static chip_fence* fence_of(graft_event event) {
  pthread_mutex_lock(&event->mutex);
  chip_fence* fence = event->fence;
  if (fence != NULL) chip_fence_retain(fence);
  pthread_mutex_unlock(&event->mutex);
  return fence;
}

graft_status event_record(graft_event event, graft_stream stream) {
  chip_fence* fence = NULL;
  chip_status status = chip_fence_create(&fence);
  if (status == CHIP_OK) status = chip_signal(stream->queue, fence);
  if (status == CHIP_OK) {
    pthread_mutex_lock(&event->mutex);
    chip_fence* before = event->fence;
    event->fence = fence;
    pthread_mutex_unlock(&event->mutex);
    fence = before;
  }
  if (fence != NULL) chip_fence_release(fence);
  return status_of(status, "event_record");
}

graft_status event_query(graft_event event) {
  chip_fence* fence = fence_of(event);
  if (fence == NULL) return GRAFT_OK;
  const graft_status status = status_of(chip_fence_wait(fence, 0), "event_query");
  chip_fence_release(fence);
  return status;
}

graft_status event_synchronize_within(graft_event event, uint64_t timeout_ns) {
  chip_fence* fence = fence_of(event);
  if (fence == NULL) return GRAFT_OK;
  graft_status status = status_of(chip_fence_wait(fence, timeout_ns), "event_synchronize");
  if (status == GRAFT_OK) {
    const chip_error error = chip_fence_take_error(fence);
    status = late_status(&error);
  }
  chip_fence_release(fence);
  return status;
}

graft_status event_synchronize(graft_event event) {
  return event_synchronize_within(event, CHIP_FOREVER);
}

static graft_status elapsed(chip_fence* from, chip_fence* to, int64_t* out_ns) {
  if (from == NULL || to == NULL) {
    return failed(GRAFT_INVALID_ARGUMENT, "event_elapsed: record both events first");
  }
  if (chip_fence_wait(from, 0) == CHIP_BUSY || chip_fence_wait(to, 0) == CHIP_BUSY) {
    return GRAFT_BUSY;
  }
  *out_ns = chip_fence_time(to) - chip_fence_time(from);
  return GRAFT_OK;
}

graft_status event_elapsed(graft_event start, graft_event end, int64_t* out_ns) {
  chip_fence *from = fence_of(start), *to = fence_of(end);
  const graft_status status = elapsed(from, to, out_ns);
  if (from != NULL) chip_fence_release(from);
  if (to != NULL) chip_fence_release(to);
  return status;
}

graft_status stream_wait_event(graft_stream stream, graft_event event) {
  chip_fence* fence = fence_of(event);
  if (fence == NULL) return GRAFT_OK;
  const chip_status status = chip_await(stream->queue, fence);
  chip_fence_release(fence);
  return status_of(status, "stream_wait_event");
}
