// drivers/trace/objects/waiting.cpp: waits of the layer's own.
#include "objects/waiting.h"

#include "objects/probes.h"

namespace graft::trace {

// A wait said that the stream has failed.
static void owe(TraceCall& call, graft_status status) {
  const graft_driver_table& driver = call.layer.driver();
  HeldError error{status, 0, call.layer.driver_text()};
  call.layer.forget_failure();
  if (driver.stream_error != nullptr) {
    char text[1024] = "";
    driver.stream_error(call.stream_handle, &error.tag, text, sizeof text);
  }
  call.layer.held.set(call.stream_handle, error);
  const std::lock_guard lock(call.layer.mutex);
  note_failed(call, *call.stream, call.stream->done);
}

bool wait_for_stream(TraceCall& call) {
  const graft_status status = call.layer.driver().stream_synchronize(call.stream_handle);
  if (status != GRAFT_OK) owe(call, status);
  return status == GRAFT_OK;
}

bool ends_alone(const TraceCall& call) {
  const std::string_view slot = call.table.slots[call.slot].name;
  return call.command != 0 && call.stream != nullptr && slot != "host_callback" &&
         slot != "stream_wait_event" && &call.table != &table_facts<graft_collectives_table>;
}

void end_command(TraceCall& call) {
  constexpr uint64_t kPatience = 2'000'000'000;
  const graft_driver_table& driver = call.layer.driver();
  bool open = false;  // the stream may wait for what its caller does later
  {
    const std::lock_guard lock(call.layer.mutex);
    open = call.stream->last_callback > call.stream->done || !call.stream->waits.empty();
  }
  const auto within = driver.stream_synchronize_within;
  if (open && within == nullptr) return;
  const graft_status status =
      open ? within(call.stream_handle, kPatience) : driver.stream_synchronize(call.stream_handle);
  if (status == GRAFT_BUSY) return;
  if (status != GRAFT_OK) return owe(call, status);
  const std::lock_guard lock(call.layer.mutex);
  call.layer.ledger.complete(*call.stream, call.command);
}

}  // namespace graft::trace
