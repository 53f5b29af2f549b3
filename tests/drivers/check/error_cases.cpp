// tests/drivers/check/error_cases.cpp: late errors are told once and the device lives on.
#include <cstring>

#include "check/cases.h"

using graft::check::pattern;

namespace {

// Enqueues the copy that the driver was told to let fail.
void enqueue_failing_copy(graft::check::Session& session, graft_stream stream,
                          graft_address address, std::vector<uint8_t>& bytes, uint32_t tag) {
  session.upload(stream, address, bytes);
  session.expect(session.table.copy(stream, address, reinterpret_cast<uint64_t>(bytes.data()),
                                    bytes.size(), GRAFT_HOST_TO_DEVICE, tag),
                 GRAFT_OK, "a copy that fails late");
}

}  // namespace

DRIVER_CASE(told_once, "late error: synchronize returns it once", "", kLateError) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(64);
  auto bytes = pattern(64, 20);
  enqueue_failing_copy(session, stream, address, bytes, 42);
  session.require(session.table.stream_synchronize(stream) != GRAFT_OK,
                  "a command failed and stream_synchronize returned GRAFT_OK");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK,
                 "stream_synchronize after the error was told");
  session.upload(stream, address, bytes);
  session.require(session.download(stream, address, 64) == bytes,
                  "after a late error a copy gives wrong bytes");
}

DRIVER_CASE(names_the_tag, "late error: stream_error names the command's tag", "stream_error",
            kLateError) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(64);
  auto bytes = pattern(64, 21);
  enqueue_failing_copy(session, stream, address, bytes, 42);
  session.require(session.table.stream_synchronize(stream) != GRAFT_OK,
                  "a command failed and stream_synchronize returned GRAFT_OK");
  uint32_t tag = 0;
  char text[16];
  std::memset(text, 'x', sizeof text);
  session.expect(session.table.stream_error(stream, &tag, text, 8), GRAFT_OK, "stream_error");
  session.require(tag == 42, "stream_error gave tag " + std::to_string(tag) + " instead of 42");
  session.require(std::memchr(text, 0, 8) != nullptr && text[8] == 'x',
                  "stream_error does not keep to its capacity");
}

DRIVER_CASE(spreads, "late error: spreads to a stream that waits", "stream_wait_event",
            kLateError) {
  graft_stream stream = session.stream();
  graft_stream waiting = session.stream();
  graft_event event = session.event();
  const graft_address address = session.allocate(64);
  auto bytes = pattern(64, 22);
  session.delay(stream, 0);
  enqueue_failing_copy(session, stream, address, bytes, 1);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  session.expect(session.table.stream_wait_event(waiting, event), GRAFT_OK, "stream_wait_event");
  session.require(session.table.stream_synchronize(waiting) != GRAFT_OK,
                  "a stream that waited for failed work does not know of it");
}

DRIVER_CASE(counts_as_done, "late error: a failed command counts as done", "", kLateError) {
  graft_stream stream = session.stream();
  graft_event event = session.event();
  const graft_address address = session.allocate(64);
  auto bytes = pattern(64, 23);
  enqueue_failing_copy(session, stream, address, bytes, 1);
  session.expect(session.table.event_record(event, stream), GRAFT_OK, "event_record");
  session.require(session.table.stream_synchronize(stream) != GRAFT_OK,
                  "a command failed and stream_synchronize returned GRAFT_OK");
  session.require(session.table.event_query(event) != GRAFT_BUSY,
                  "an event behind a failed command stays busy for ever");
}

DRIVER_CASE(message_fits, "messages: last_message keeps to its capacity", "last_message", kOpen) {
  graft_address address = 0;
  session.require(session.table.memory_allocate(session.device, 1ull << 55, &address) != GRAFT_OK,
                  "memory_allocate of 32 PiB succeeded");
  char text[16];
  std::memset(text, 'x', sizeof text);
  session.expect(session.table.last_message(text, 4), GRAFT_OK, "last_message");
  session.require(std::memchr(text, 0, 4) != nullptr && text[4] == 'x',
                  "last_message wrote beyond its capacity or does not end");
}

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
