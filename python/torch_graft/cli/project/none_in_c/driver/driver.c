/* driver/driver.c: memory, copies, streams and events; operators run on the CPU, counted.
 *
 * For the real chip: its kernels are the next step. `python -m torch_graft new-driver` with
 * --kernels own or --kernels c writes a project that has them. */
#include "driver.h"

const char* const driver_dialect = "";

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
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
