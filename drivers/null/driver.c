/* drivers/null/driver.c: the smallest driver: accepts everything, computes nothing. */
#include "graft/driver.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static struct graft_device_s {
  graft_address next; /* a counter: no address is ever handed out twice */
} the_device = {1u << 20};

static graft_status device_count(uint32_t* out_count) { return *out_count = 1, GRAFT_OK; }
static graft_status device_properties(uint32_t ordinal, graft_device_properties* properties) {
  graft_device_properties mine = {.struct_size = properties->struct_size,
                                  .features = GRAFT_FEATURE_SIMULATED,
                                  .compute_units = 1,
                                  .max_group_size = 1,
                                  .sub_group_size = 1,
                                  .memory_bytes = 1u << 30,
                                  .allocation_alignment = 512,
                                  .name = "null device"};
  if (ordinal > 0) return GRAFT_NOT_FOUND;
  memcpy(properties, &mine, mine.struct_size < sizeof mine ? mine.struct_size : sizeof mine);
  return GRAFT_OK;
}
static graft_status device_open(uint32_t ordinal, graft_device* out_device) {
  return ordinal > 0 ? GRAFT_NOT_FOUND : (*out_device = &the_device, GRAFT_OK);
}
static graft_status device_close(graft_device device) { return GRAFT_OK; }
static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  *out = __atomic_fetch_add(&device->next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
  return GRAFT_OK;
}
static graft_status memory_free(graft_device device, graft_address address) { return GRAFT_OK; }
static graft_status stream_create(graft_device device, int32_t priority, graft_stream* out) {
  return *out = (graft_stream)device, GRAFT_OK; /* a handle is any pointer that is not NULL */
}
static graft_status stream_destroy(graft_stream stream) { return GRAFT_OK; }
static graft_status stream_synchronize(graft_stream stream) { return GRAFT_OK; }
static graft_status copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                         uint32_t kind, uint32_t tag) {
  return GRAFT_OK;
}
static graft_status fill(graft_stream stream, graft_address to, uint64_t bytes, const void* pattern,
                         uint32_t pattern_bytes, uint32_t tag) {
  return GRAFT_OK;
}
static graft_status event_create(graft_device device, uint32_t timed, graft_event* out) {
  return *out = (graft_event)device, GRAFT_OK;
}
static graft_status event_destroy(graft_event event) { return GRAFT_OK; }
static graft_status event_record(graft_event event, graft_stream stream) { return GRAFT_OK; }
static graft_status event_query(graft_event event) { return GRAFT_OK; }

#define FILL_REQUIRED(name) .name = name,
#define FILL_OPTIONAL(name) /* stays NULL: Graft does without */
#define FILL(presence, name, parameters) FILL_##presence(name)
static const graft_driver_table table = {GRAFT_PRELUDE("null"), GRAFT_DRIVER_SLOTS(FILL)};

graft_status graft_driver_query(graft_driver_table* out) { return graft_driver_fill(out, &table); }
