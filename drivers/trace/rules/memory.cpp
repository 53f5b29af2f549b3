// drivers/trace/rules/memory.cpp: rules of devices and of their memory.
#include <algorithm>

#include "objects/landing.h"
#include "objects/launch_probe.h"
#include "objects/probes.h"
#include "objects/results.h"
#include "objects/watch.h"
#include "rules/checks.h"
#include "rules/hooks.h"
#include "rules/room.h"

namespace graft::trace {

void MemoryBefore::device_open(TraceCall& call, uint32_t ordinal, graft_device*) {
  const std::lock_guard lock(call.layer.mutex);
  for (const auto& [handle, device] : call.layer.ledger.devices) {
    if (device.ordinal != ordinal) continue;
    call.caller_broke("open-twice", "the device is open already", "Open each ordinal once.");
  }
}

void MemoryBefore::device_reset(TraceCall& call, uint32_t ordinal) {
  const std::lock_guard lock(call.layer.mutex);
  for (const auto& [handle, device] : call.layer.ledger.devices) {
    if (device.ordinal != ordinal) continue;
    call.caller_broke("reset-open", "the device is open", "Close a device before its reset.");
  }
}

void MemoryAfter::device_open(TraceCall& call, graft_status status, uint32_t ordinal,
                              graft_device* out_device) {
  if (status != GRAFT_OK) return;
  graft_device_properties properties{};
  properties.struct_size = sizeof properties;
  call.layer.driver().device_properties(ordinal, &properties);
  watch(call.layer);
  const std::lock_guard lock(call.layer.mutex);
  DeviceRecord& device = call.layer.ledger.devices[*out_device];
  device.ordinal = ordinal;
  device.properties = properties;
  ++device.count;
  call.layer.ledger.ended.erase(*out_device);
}

void MemoryBefore::device_close(TraceCall& call, graft_device handle) {
  uint64_t streams = 0, events = 0, memory = 0;
  {
    const std::lock_guard lock(call.layer.mutex);
    ObjectLedger& ledger = call.layer.ledger;
    const auto device = ledger.devices.find(handle);
    if (device == ledger.devices.end()) return;
    const auto belongs = [&](const auto& row) { return row.second.device == handle; };
    streams = std::count_if(ledger.streams.begin(), ledger.streams.end(),
                            [&](const auto& row) { return row.second->device == handle; });
    events = std::count_if(ledger.events.begin(), ledger.events.end(), belongs);
    memory = device->second.memory.size() + device->second.reserved.size();
  }
  if (streams + events + memory != 0) {
    call.caller_broke("left-behind",
                      std::to_string(streams) + " streams, " + std::to_string(events) +
                          " events and " + std::to_string(memory) + " allocations are still there",
                      "Destroy and free them before device_close.");
  }
  free_tickets(call.layer, handle);
  unload_probe(call.layer, handle);
}

void MemoryAfter::device_close(TraceCall& call, graft_status status, graft_device handle) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto device = ledger.devices.find(handle);
  if (device == ledger.devices.end() || --device->second.count != 0) return;
  ledger.devices.erase(device);
  ledger.ended.insert(handle);
  const auto belongs = [&](const auto& row) { return row.second.device == handle; };
  std::erase_if(ledger.programs, belongs);
  std::erase_if(ledger.others, belongs);
  std::erase_if(ledger.events, belongs);
}

void MemoryBefore::memory_allocate(TraceCall& call, graft_device device, uint64_t bytes,
                                   graft_address*) {
  if (bytes == 0) {
    call.caller_broke("no-bytes", "asks for 0 bytes", "Allocate at least one byte.");
  }
  note_free(call, device);
}

// What is wrong with a fresh allocation, beside its neighbours.
static void check_overlap(TraceCall& call, const DeviceRecord& device, graft_address begin,
                          uint64_t bytes) {
  const auto next = device.memory.lower_bound(begin);
  const auto report = [&](graft_address other, uint64_t size) {
    call.driver_broke("overlap",
                      "gave " + hex(begin) + ", which overlaps the live allocation at " +
                          hex(other) + " of " + std::to_string(size) + " bytes",
                      "Give memory that no live allocation has.");
  };
  if (next != device.memory.end() && next->first - begin < bytes) {
    return report(next->first, next->second.bytes);
  }
  if (next == device.memory.begin()) return;
  const auto previous = std::prev(next);
  if (!previous->second.imported && begin - previous->first < previous->second.bytes) {
    report(previous->first, previous->second.bytes);
  }
}

void MemoryAfter::memory_allocate(TraceCall& call, graft_status status, graft_device handle,
                                  uint64_t bytes, graft_address* out) {
  if (status == GRAFT_OUT_OF_MEMORY && !call.planted) {
    check_room(call, handle, bytes);
    check_kept(call, handle, [&] {
      graft_address second = 0;
      const graft_driver_table& driver = call.layer.driver();
      const graft_status again = driver.memory_allocate(handle, bytes, &second);
      if (again == GRAFT_OK) driver.memory_free(handle, second);
      return again;
    });
  }
  if (status != GRAFT_OK) return;
  const graft_address begin = *out;
  if (begin == 0) {
    call.driver_broke("null-result", "OK with address 0", "Give an address above 0.");
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const graft_device_properties& properties = device->second.properties;
  if (properties.allocation_alignment > 1 && begin % properties.allocation_alignment != 0) {
    call.driver_broke("misaligned",
                      "gave " + hex(begin) + ", no multiple of the " +
                          std::to_string(properties.allocation_alignment) +
                          " that the properties state",
                      "Align every allocation, or state less.");
  }
  if (begin + bytes < begin) {
    call.driver_broke("overlap", "the range passes the last address", "Give a whole range.");
  }
  check_overlap(call, device->second, begin, bytes);
  ObjectLedger::hold(device->second, bytes);
  const auto [made, fresh] = device->second.memory.emplace(begin, Allocation{.bytes = bytes});
  if (fresh) return;
  made->second.bytes = std::max(made->second.bytes, bytes);
  ++made->second.count;
}

void MemoryBefore::memory_free(TraceCall& call, graft_device handle, graft_address address) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const auto found = device->second.memory.find(address);
  if (found == device->second.memory.end() || found->second.imported || found->second.mapped) {
    call.caller_broke("not-allocated", hex(address) + " is no live allocation of this device",
                      "Free each address from memory_allocate once.");
    return;
  }
  if (const auto place = call.layer.ledger.unfinished(found->second.uses)) {
    call.caller_broke("freed-in-use",
                      "command " + std::to_string(place->number) + " of stream " +
                          std::to_string(place->stream) + ", which uses the memory, may still run",
                      "Wait for the commands that use memory before freeing it.");
  }
  if (call.is_refused()) return;
  ObjectLedger::let_go(device->second, found->second.bytes);
  // Gone before the driver frees it: another thread may get the address at once.
  if (--found->second.count == 0) device->second.memory.erase(found);
}

void MemoryBefore::memory_info(TraceCall& call, graft_device handle, uint64_t*, uint64_t*) {
  call.prompt = true;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  call.held_bytes = device->second.held_bytes;
  call.changes = device->second.changes;
}

// The layer counts an allocation after the driver and a free before it: unless one has come or gone
// meanwhile, the driver has given away at least what the layer counts.
void MemoryAfter::memory_info(TraceCall& call, graft_status status, graft_device handle,
                              uint64_t* out_free, uint64_t* out_total) {
  if (status != GRAFT_OK) return;
  if (*out_free > *out_total) {
    call.driver_broke("impossible", "more memory is free than there is", "Count in bytes.");
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end() || device->second.changes != call.changes) return;
  if (*out_total - *out_free >= call.held_bytes) return;
  call.driver_broke("impossible",
                    std::to_string(*out_free) + " of " + std::to_string(*out_total) +
                        " bytes are free, but the caller holds " + std::to_string(call.held_bytes),
                    "Say what is free now; what is allocated is not free.");
}

void MemoryAfter::host_allocate(TraceCall& call, graft_status status, graft_device handle,
                                uint64_t bytes, void** out_pointer) {
  if (status != GRAFT_OK) return;
  if (*out_pointer == nullptr) {
    call.driver_broke("null-result", "OK without memory", "Return OUT_OF_MEMORY.");
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  auto& blocks = device->second.host;
  const auto begin = reinterpret_cast<uintptr_t>(*out_pointer);
  const auto next = blocks.lower_bound(begin);
  const bool meets_next = next != blocks.end() && next->first - begin < bytes;
  const bool meets_previous =
      next != blocks.begin() && begin - std::prev(next)->first < std::prev(next)->second.bytes;
  if (meets_next || meets_previous) {
    call.driver_broke("overlap", "gave pinned memory that overlaps a live block of it",
                      "Give memory that no live block has.");
  }
  const auto [made, fresh] = blocks.emplace(begin, HostBlock{.bytes = bytes});
  if (fresh) return;
  made->second.bytes = std::max(made->second.bytes, bytes);
  ++made->second.count;
}

void MemoryBefore::host_free(TraceCall& call, graft_device handle, void* pointer) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const auto found = device->second.host.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == device->second.host.end()) {
    call.caller_broke("not-allocated", "no live memory of host_allocate begins there",
                      "Free each pointer from host_allocate once.");
    return;
  }
  if (call.layer.ledger.unfinished(found->second.uses)) {
    call.caller_broke("freed-in-use", "a copy from or to this memory may still run",
                      "Wait for the copies before freeing their memory.");
  }
  if (call.is_refused()) return;
  forget_signs(call.layer.ledger, found->first, found->second.bytes);
  forget_results(call.layer.ledger, found->first, found->second.bytes);
  if (--found->second.count == 0) device->second.host.erase(found);
}

void MemoryBefore::memory_host_view(TraceCall& call, graft_device device, graft_address address,
                                    uint64_t bytes, void**) {
  use_range(call, device, address, bytes, "address");
}

void MemoryAfter::memory_host_view(TraceCall& call, graft_status status, graft_device,
                                   graft_address, uint64_t, void** out_pointer) {
  if (status == GRAFT_OK && *out_pointer == nullptr) {
    call.driver_broke("null-result", "OK without a pointer", "Return UNSUPPORTED.");
  }
}

void MemoryBefore::memory_export(TraceCall& call, graft_device device, graft_address address,
                                 uint8_t*, graft_address*) {
  use_range(call, device, address, 1, "address");
}

void MemoryAfter::memory_import(TraceCall& call, graft_status status, graft_device handle,
                                const uint8_t*, graft_address* out_address) {
  if (status != GRAFT_OK) return;
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device != call.layer.ledger.devices.end()) {
    device->second.memory[*out_address] = Allocation{.imported = true};
  }
}

void MemoryBefore::memory_release(TraceCall& call, graft_device handle, graft_address address) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const auto found = device->second.memory.find(address);
  if (found == device->second.memory.end() || !found->second.imported) {
    call.caller_broke("not-allocated", hex(address) + " was not imported",
                      "Release each address from memory_import once.");
    return;
  }
  if (call.layer.ledger.unfinished(found->second.uses)) {
    call.caller_broke("freed-in-use", "a command that uses the memory may still run",
                      "Wait for the commands that use memory before releasing it.");
  }
  if (!call.is_refused()) device->second.memory.erase(found);
}

}  // namespace graft::trace
