/* tests/drivers/stuck.c: tiny.c without any slot that waits for a time, counting what it gave out.
 *
 * A copy of STUCK_BYTES bytes to the device never ends: what comes after it does not run, and
 * stream_synchronize would never return. device_close prints what Graft has not given back. */
#include <stdio.h>
#include <unistd.h>

#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query

struct graft_event_s {
  int behind; /* it was recorded behind the copy that never ends */
};

static int stuck, memory_left, events_left, streams_left;

static graft_status counted_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  graft_status status = memory_allocate(device, bytes, out);
  if (status == GRAFT_OK) __atomic_add_fetch(&memory_left, 1, __ATOMIC_SEQ_CST);
  return status;
}

static graft_status counted_free(graft_device device, graft_address address) {
  __atomic_sub_fetch(&memory_left, 1, __ATOMIC_SEQ_CST);
  return memory_free(device, address);
}

static graft_status counted_stream(graft_device device, int32_t priority, graft_stream* out) {
  __atomic_add_fetch(&streams_left, 1, __ATOMIC_SEQ_CST);
  return stream_create(device, priority, out);
}

static graft_status counted_stream_end(graft_stream stream) {
  (void)stream;
  __atomic_sub_fetch(&streams_left, 1, __ATOMIC_SEQ_CST);
  return GRAFT_OK;
}

static graft_status stuck_synchronize(graft_stream stream) {
  (void)stream;
  while (stuck) pause();
  return GRAFT_OK;
}

static graft_status stuck_copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                               uint32_t kind, uint32_t tag) {
  const char* never = getenv("STUCK_BYTES");
  if (never != NULL && kind == GRAFT_HOST_TO_DEVICE && bytes == strtoull(never, NULL, 10)) {
    stuck = 1;
  }
  return stuck ? GRAFT_OK : copy(stream, to, from, bytes, kind, tag);
}

static graft_status counted_event(graft_device device, uint32_t timed, graft_event* out) {
  (void)device, (void)timed;
  *out = calloc(1, sizeof **out);
  __atomic_add_fetch(&events_left, 1, __ATOMIC_SEQ_CST);
  return GRAFT_OK;
}

static graft_status counted_event_end(graft_event event) {
  free(event);
  __atomic_sub_fetch(&events_left, 1, __ATOMIC_SEQ_CST);
  return GRAFT_OK;
}

static graft_status stuck_record(graft_event event, graft_stream stream) {
  (void)stream;
  event->behind = stuck;
  return GRAFT_OK;
}

static graft_status stuck_query(graft_event event) { return event->behind ? GRAFT_BUSY : GRAFT_OK; }

static graft_status told_close(graft_device device) {
  fprintf(stderr, "device_close: %d memory, %d events, %d streams\n", memory_left, events_left,
          streams_left);
  return device_close(device);
}

graft_status graft_driver_query(graft_driver_table* table) {
  graft_status status = tiny_query(table);
  if (status != GRAFT_OK) return status;
  table->name = "stuck";
  table->device_close = told_close;
  table->memory_allocate = counted_allocate;
  table->memory_free = counted_free;
  table->stream_create = counted_stream;
  table->stream_destroy = counted_stream_end;
  table->stream_synchronize = stuck_synchronize;
  table->copy = stuck_copy;
  table->event_create = counted_event;
  table->event_destroy = counted_event_end;
  table->event_record = stuck_record;
  table->event_query = stuck_query;
  return GRAFT_OK;
}
