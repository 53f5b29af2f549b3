// tests/drivers/check/reset_cases.cpp: a device that was reset works as a new one.
#include <vector>

#include "check/cases.h"

DRIVER_CASE(reset, "reset: a device that was closed and reset works", "device_reset", kOpen) {
  const graft_driver_table& table = session.table;
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(4096);
  session.upload(stream, address, graft::check::pattern(4096, 1));
  session.expect(table.stream_destroy(stream), GRAFT_OK, "stream_destroy");
  session.expect(table.memory_free(session.device, address), GRAFT_OK, "memory_free");
  session.expect(table.device_close(session.device), GRAFT_OK, "device_close");
  const graft_status status = table.device_reset(0);
  if (status == GRAFT_UNSUPPORTED) throw graft::check::Omitted("a reset of this device");
  session.expect(status, GRAFT_OK, "device_reset");
  session.expect(table.device_open(0, &session.device), GRAFT_OK, "device_open after device_reset");
  stream = session.stream();
  const std::vector<uint8_t> sent = graft::check::pattern(4096, 2);
  const graft_address again = session.allocate(4096);
  session.upload(stream, again, sent);
  session.require(session.download(stream, again, 4096) == sent,
                  "bytes that a device got after device_reset do not come back");
}

DRIVER_CASE(reset_range, "reset: an ordinal past the last one is refused", "device_reset",
            kLoaded) {
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  const graft_status status = session.table.device_reset(count);
  session.require(status != GRAFT_OK, "device_reset past the last device returned GRAFT_OK");
}
