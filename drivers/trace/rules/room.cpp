// drivers/trace/rules/room.cpp: rules of slots that fail for want of memory.
#include "rules/room.h"

#include <optional>
#include <string>

namespace graft::trace {
namespace {

// What the driver states as free; nothing if it states none, or if the caller's memory has changed
// since changes.
std::optional<uint64_t> free_bytes(TraceCall& call, graft_device handle, uint64_t* changes) {
  const auto ask = call.layer.driver().memory_info;
  uint64_t free = 0, total = 0;
  if (ask == nullptr || !call.layer.settings.probe) return std::nullopt;
  if (ask(handle, &free, &total) != GRAFT_OK) {
    call.layer.forget_failure();
    return std::nullopt;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return std::nullopt;
  const bool fresh = *changes == 0;
  if (fresh) *changes = device->second.changes + 1;
  return *changes == device->second.changes + 1 ? std::optional(free) : std::nullopt;
}

}  // namespace

void note_free(TraceCall& call, graft_device device) {
  call.changes = 0;
  call.free_bytes = free_bytes(call, device, &call.changes);
}

void check_kept(TraceCall& call, graft_device device, const std::function<graft_status()>& again) {
  if (!call.free_bytes) return;
  const std::optional<uint64_t> first = free_bytes(call, device, &call.changes);
  if (!first || *first >= *call.free_bytes || again() != GRAFT_OUT_OF_MEMORY) return;
  call.layer.forget_failure();
  const std::optional<uint64_t> second = free_bytes(call, device, &call.changes);
  if (!second || *second >= *first) return;
  call.driver_broke("kept-memory",
                    "OUT_OF_MEMORY, and then " + std::to_string(*call.free_bytes - *first) +
                        " bytes less were free than before; the same again took " +
                        std::to_string(*first - *second),
                    "Give back all that a call has taken before it fails.");
}

void check_room(TraceCall& call, graft_device handle, uint64_t bytes) {
  const auto ask = call.layer.driver().memory_info;
  uint64_t free = 0, total = 0, held = 0, most = 0, largest = 0;
  if (ask != nullptr && ask(handle, &free, &total) != GRAFT_OK) {
    call.layer.forget_failure();
    free = 0;
  }
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(handle);
    if (device == call.layer.ledger.devices.end()) return;
    held = device->second.held_bytes;
    most = device->second.most_bytes;
    largest = device->second.properties.max_allocation_bytes;
  }
  if (largest != 0 && bytes > largest) return;
  const char* const remedy = "Let what failed or was freed leave its memory to later allocations.";
  if (bytes <= free / 64) {
    call.driver_broke(
        "no-room",
        "OUT_OF_MEMORY, but memory_info states " + std::to_string(free) + " bytes as free", remedy);
  } else if (bytes <= most && held <= most / 16) {
    call.driver_broke("no-room",
                      "OUT_OF_MEMORY, but the caller has freed all but " + std::to_string(held) +
                          " of " + std::to_string(most) +
                          " bytes, unless another process took them",
                      remedy);
  }
}

}  // namespace graft::trace
