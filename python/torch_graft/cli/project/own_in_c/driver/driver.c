/* driver/driver.c: the table, with the vendor's own kernels as the extension graft.ops.
 *
 * For the real chip: change the name only if the device shall be called otherwise. An extension
 * of a library (graft.blas, graft.dnn, graft.collectives) is one more name in the slot below. */
#include "driver.h"

#include <string.h>

#include "operation.h"

const char* const driver_dialect = "";

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  if (strcmp(name, "graft.ops") != 0 || version != 1) {
    return failed(GRAFT_NOT_FOUND, "there is no extension %s, version %u", name, version);
  }
  *out_table = &operation_table;
  return GRAFT_OK;
}

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
    .extension = extension,
};

graft_status graft_driver_query(graft_driver_table* table) {
  return graft_driver_fill(table, &kTable);
}
