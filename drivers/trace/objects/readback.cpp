// drivers/trace/objects/readback.cpp: reads device memory behind the call's stream.
#include "objects/readback.h"

#include <algorithm>

#include "objects/waiting.h"

namespace graft::trace {

bool read_back(TraceCall& call, void* to, graft_address from, uint64_t bytes) {
  if (bytes == 0) return true;
  const graft_driver_table& driver = call.layer.driver();
  if (driver.copy(call.stream_handle, reinterpret_cast<uint64_t>(to), from, bytes,
                  GRAFT_DEVICE_TO_HOST, 0) != GRAFT_OK) {
    call.layer.forget_failure();
    return false;
  }
  return wait_for_stream(call);
}

bool is_quiet(TraceCall& call) {
  const std::lock_guard lock(call.layer.mutex);
  if (call.stream->last_callback > call.stream->done) return false;
  for (const auto& [handle, stream] : call.layer.ledger.streams) {
    if (stream != call.stream && stream->device == call.device && stream->done < stream->queued) {
      return false;
    }
  }
  return true;
}

uint64_t commands_so_far(TraceCall& call) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  return device == call.layer.ledger.devices.end() ? UINT64_MAX : device->second.commands.load();
}

Margin margin_around(TraceCall& call, graft_address to, uint64_t bytes) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device == call.layer.ledger.devices.end()) return {};
  graft_address begin = 0;
  const Allocation* const around = ObjectLedger::around(device->second, to, &begin);
  if (around == nullptr || around->imported) return {};
  return {.before = std::min(kMostMargin, to - begin),
          .after = std::min(kMostMargin, begin + around->bytes - to - bytes)};
}

void report_wrong_byte(TraceCall& call, uint64_t place, uint64_t bytes) {
  call.driver_broke("wrong-bytes",
                    "byte " + std::to_string(place) + " of " + std::to_string(bytes) +
                        " has the wrong value after the command",
                    "Write every byte of the range.");
}

void report_overrun(TraceCall& call, const std::string& where) {
  call.driver_broke("overrun", "bytes " + where + " changed", "Write nothing beside the range.");
}

}  // namespace graft::trace
