/* tests/drivers/tiny.c: a whole driver in one C file: memory and copies, no kernels, no threads.
 *
 * Built outside the tree against driver.h alone it shows that a new driver touches no file of
 * Graft. Everything runs at the call, so streams and events have nothing to wait for. */
#include <stdlib.h>
#include <string.h>

#include "graft/driver.h"

enum { kAlignment = 256 };
static const uint64_t kMemoryBytes = 1ull << 30;

struct graft_device_s {
  int open;
};
static struct graft_device_s the_device;
static char the_stream, the_event; /* all are alike: nothing is ever pending */

static graft_status device_count(uint32_t* out_count) {
  *out_count = 1;
  return GRAFT_OK;
}

static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
  graft_device_properties mine = {0};
  uint32_t size = properties->struct_size < sizeof mine ? properties->struct_size : sizeof mine;
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  mine.struct_size = size;
  mine.device_class = GRAFT_GPU_LIKE;
  mine.features = GRAFT_FEATURE_SIMULATED;
  mine.compute_units = 3;
  mine.max_group_size = 64;
  mine.sub_group_size = 8;
  mine.capability_major = 7;
  mine.capability_minor = 5;
  mine.memory_bytes = kMemoryBytes;
  mine.allocation_alignment = kAlignment;
  strcpy(mine.name, "Tiny device");
  strcpy(mine.vendor, "Tiny works");
  memcpy(properties, &mine, size);
  return GRAFT_OK;
}

static graft_status device_open(uint32_t ordinal, graft_device* out_device) {
  if (ordinal != 0) return GRAFT_NOT_FOUND;
  the_device.open = 1;
  *out_device = &the_device;
  return GRAFT_OK;
}

static graft_status device_close(graft_device device) {
  device->open = 0;
  return GRAFT_OK;
}

static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* pointer = bytes <= kMemoryBytes ? aligned_alloc(kAlignment, (size_t)rounded) : NULL;
  (void)device;
  if (pointer == NULL) return GRAFT_OUT_OF_MEMORY;
  *out = (uint64_t)(uintptr_t)pointer;
  return GRAFT_OK;
}

static graft_status memory_free(graft_device device, graft_address address) {
  (void)device;
  free((void*)(uintptr_t)address);
  return GRAFT_OK;
}

static graft_status stream_create(graft_device device, int32_t priority, graft_stream* out) {
  (void)device, (void)priority;
  *out = (graft_stream)&the_stream;
  return GRAFT_OK;
}

static graft_status stream_destroy(graft_stream stream) {
  (void)stream;
  return GRAFT_OK;
}

static graft_status stream_synchronize(graft_stream stream) {
  (void)stream;
  return GRAFT_OK;
}

static graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                         uint32_t kind, uint32_t tag) {
  (void)stream, (void)kind, (void)tag;
  memcpy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, (size_t)bytes);
  return GRAFT_OK;
}

static graft_status fill(graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,
                         uint32_t pattern_bytes, uint32_t tag) {
  (void)stream, (void)tag;
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return GRAFT_INVALID_ARGUMENT;
  }
  for (uint64_t done = 0; done + pattern_bytes <= bytes; done += pattern_bytes) {
    memcpy((char*)(uintptr_t)to + done, pattern, pattern_bytes);
  }
  return GRAFT_OK;
}

static graft_status event_create(graft_device device, uint32_t timed, graft_event* out) {
  (void)device, (void)timed;
  *out = (graft_event)&the_event;
  return GRAFT_OK;
}

static graft_status event_destroy(graft_event event) {
  (void)event;
  return GRAFT_OK;
}

static graft_status event_record(graft_event event, graft_stream stream) {
  (void)event, (void)stream;
  return GRAFT_OK;
}

static graft_status event_query(graft_event event) {
  (void)event;
  return GRAFT_OK;
}

static const graft_driver_table kTable = {
    GRAFT_PRELUDE("tiny"),
    .device_count = device_count,
    .device_properties = device_properties,
    .device_open = device_open,
    .device_close = device_close,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .copy = copy,
    .fill = fill,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
