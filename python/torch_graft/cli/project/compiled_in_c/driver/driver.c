/* driver/driver.c: the table, with the compiler that takes Graft's kernels.
 *
 * For the real chip: change the name only if the device shall be called otherwise, and the dialect
 * if its compiler takes another language of GRAFT_DIALECTS. */
#include "driver.h"

const char* const driver_dialect = "c";

static const graft_driver_table kTable = {
    GRAFT_PRELUDE("acme"),
    .device_count = device_count,
    .device_properties = device_properties,
    .device_open = device_open,
    .device_close = device_close,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .memory_info = memory_info,
    .host_allocate = host_allocate,
    .host_free = host_free,
    .copy = copy,
    .fill = fill,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_synchronize_within = stream_synchronize_within,
    .stream_query = stream_query,
    .stream_error = stream_error,
    .host_callback = host_callback,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_synchronize_within = event_synchronize_within,
    .event_elapsed = event_elapsed,
    .stream_wait_event = stream_wait_event,
    .last_message = last_message,
    .program_compile = program_compile,
    .program_load = program_load,
    .program_unload = program_unload,
    .toolchain_fingerprint = toolchain_fingerprint,
    .kernel_find = kernel_find,
    .kernel_launch = kernel_launch,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
