/* driver/driver.h: the driver's handles, and what its files share.
 *
 * For the real chip: let the handles hold your SDK's objects instead of the chip_ ones. */
#ifndef ACME_DRIVER_DRIVER_H_
#define ACME_DRIVER_DRIVER_H_

#include "chip/chip.h"
#include "graft/extensions.h"

struct graft_device_s {
  chip* chip;
};

struct graft_stream_s {
  graft_device device;
  chip_queue* queue;
};

/* One event is recorded and waited for by several threads. */
struct graft_event_s;

/* The language of program_compile, "" if the chip takes no kernels of Graft's. */
extern const char* const driver_dialect;

/* The slots, each defined in the file of its noun; the table in driver.c has those that exist. */
#define DECLARE_SLOT(presence, name, parameters) graft_status name parameters;
GRAFT_DRIVER_SLOTS(DECLARE_SLOT)
#undef DECLARE_SLOT

/* The slots that every flavour of the driver has, for its table in driver.c. */
#define DRIVER_SLOTS                                                                              \
  GRAFT_PRELUDE("acme"),                                                                          \
      .device_count = device_count, .device_properties = device_properties,                       \
      .device_open = device_open, .device_close = device_close,                                   \
      .memory_allocate = memory_allocate, .memory_free = memory_free, .memory_info = memory_info, \
      .host_allocate = host_allocate, .host_free = host_free, .copy = copy, .fill = fill,         \
      .stream_create = stream_create, .stream_destroy = stream_destroy,                           \
      .stream_synchronize = stream_synchronize,                                                   \
      .stream_synchronize_within = stream_synchronize_within, .stream_query = stream_query,       \
      .stream_error = stream_error, .host_callback = host_callback, .event_create = event_create, \
      .event_destroy = event_destroy, .event_record = event_record, .event_query = event_query,   \
      .event_synchronize = event_synchronize,                                                     \
      .event_synchronize_within = event_synchronize_within, .event_elapsed = event_elapsed,       \
      .stream_wait_event = stream_wait_event, .last_message = last_message

/* Keeps a text for the slot last_message of this thread and returns status. */
graft_status failed(graft_status status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
/* The status of an SDK's call; keeps a text that names the call. */
graft_status status_of(chip_status status, const char* call);
/* The status of a late error, with its text; GRAFT_OK if error is none. */
graft_status late_status(const chip_error* error);

#endif /* ACME_DRIVER_DRIVER_H_ */
