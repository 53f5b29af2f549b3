/* driver/failure.c: statuses and texts of failures.
 *
 * For the real chip: map your SDK's statuses in status_of, and add its own text, which the user
 * sees in the exception. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

static _Thread_local char last_text[512];

graft_status failed(graft_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_text, sizeof last_text, format, arguments);
  va_end(arguments);
  return status;
}

graft_status last_message(char* out_text, size_t capacity) {
  if (capacity != 0) snprintf(out_text, capacity, "%s", last_text);
  return GRAFT_OK;
}

graft_status status_of(chip_status status, const char* call) {
  switch (status) {
    case CHIP_OK:
      return GRAFT_OK;
    case CHIP_BUSY:
      return GRAFT_BUSY;
    case CHIP_NO_MEMORY:
      return failed(GRAFT_OUT_OF_MEMORY, "%s: no memory is left", call);
    case CHIP_BAD_ADDRESS:
      return failed(GRAFT_INVALID_ARGUMENT, "%s: no allocation begins at this address", call);
    default:
      return failed(GRAFT_INTERNAL, "%s: the chip answered %d", call, (int)status);
  }
}

graft_status late_status(const chip_error* error) {
  if (error->status == CHIP_OK) return GRAFT_OK;
  return failed(GRAFT_LAUNCH_FAILED, "%s", error->text);
}
