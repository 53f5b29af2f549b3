// drivers/trace/rules/mapping.cpp: rules of reserved addresses and of the memory behind them.
#include <algorithm>

#include "rules/checks.h"
#include "rules/hooks.h"
#include "rules/room.h"

namespace graft::trace {
namespace {

std::string range_text(graft_address begin, uint64_t bytes) {
  return hex(begin) + " of " + std::to_string(bytes) + " bytes";
}

bool overlap(graft_address begin, uint64_t bytes, graft_address other, uint64_t other_bytes) {
  return begin < other + other_bytes && other < begin + bytes;
}

// Whether sizes and addresses of the call are multiples of the device's granularity.
void check_granularity(TraceCall& call, const DeviceRecord& device, uint64_t address,
                       uint64_t bytes) {
  const uint64_t granularity = std::max<uint64_t>(device.properties.map_granularity, 1);
  if (bytes != 0 && address % granularity == 0 && bytes % granularity == 0) return;
  call.caller_broke("granularity",
                    range_text(address, bytes) + " is no multiple of map_granularity, " +
                        std::to_string(granularity),
                    "Reserve, map and unmap in multiples of it.");
}

// One allocation of neighbours that were mapped in the same reservation.
void join(std::map<graft_address, Allocation>& memory,
          std::map<graft_address, Allocation>::iterator first,
          std::map<graft_address, Allocation>::iterator second, const ObjectLedger& ledger) {
  first->second.bytes += second->second.bytes;
  for (const CommandPlace& place : second->second.uses) ledger.use(first->second.uses, place);
  memory.erase(second);
}

// The reservation around the range; end() if there is none.
auto reservation(const DeviceRecord& device, graft_address address, uint64_t bytes) {
  auto next = device.reserved.upper_bound(address);
  if (next == device.reserved.begin()) return device.reserved.end();
  --next;
  const uint64_t offset = address - next->first;
  const bool inside = offset <= next->second && bytes <= next->second - offset;
  return inside ? next : device.reserved.end();
}

}  // namespace

void MappingBefore::memory_reserve(TraceCall& call, graft_device handle, uint64_t bytes,
                                   graft_address*) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device != call.layer.ledger.devices.end()) check_granularity(call, device->second, 0, bytes);
}

void MappingAfter::memory_reserve(TraceCall& call, graft_status status, graft_device handle,
                                  uint64_t bytes, graft_address* out) {
  if (status != GRAFT_OK) return;
  const graft_address begin = *out;
  if (begin == 0) {
    call.driver_broke("null-result", "OK with address 0", "Give an address above 0.");
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const uint64_t granularity = std::max<uint64_t>(device->second.properties.map_granularity, 1);
  if (begin % granularity != 0) {
    call.driver_broke("misaligned",
                      "gave " + range_text(begin, bytes) + ", no multiple of map_granularity, " +
                          std::to_string(granularity),
                      "Align what you reserve.");
  }
  const auto reuses = [&](graft_address other, uint64_t other_bytes) {
    if (!overlap(begin, bytes, other, other_bytes)) return;
    call.driver_broke("overlap",
                      "gave " + range_text(begin, bytes) + ", which overlaps " +
                          range_text(other, other_bytes) + ", in use",
                      "Reserve addresses that nothing has.");
  };
  for (const auto& [other, size] : device->second.reserved) reuses(other, size);
  for (const auto& [other, allocation] : device->second.memory) {
    if (!allocation.mapped) reuses(other, allocation.bytes);
  }
  device->second.reserved[begin] = bytes;
}

void MappingBefore::memory_map(TraceCall& call, graft_device handle, graft_address address,
                               uint64_t bytes) {
  note_free(call, handle);
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  check_granularity(call, device->second, address, bytes);
  if (reservation(device->second, address, bytes) == device->second.reserved.end()) {
    call.caller_broke("not-reserved", range_text(address, bytes) + " is in no reservation",
                      "Map inside what memory_reserve gave.");
  }
  for (const auto& [other, allocation] : device->second.memory) {
    if (!allocation.mapped || !overlap(address, bytes, other, allocation.bytes)) continue;
    call.caller_broke(
        "mapped-twice",
        range_text(address, bytes) + " has memory in " + range_text(other, allocation.bytes),
        "Unmap it first.");
  }
}

void MappingAfter::memory_map(TraceCall& call, graft_status status, graft_device handle,
                              graft_address address, uint64_t bytes) {
  if (status == GRAFT_OUT_OF_MEMORY && !call.planted) {
    check_room(call, handle, bytes);
    check_kept(call, handle, [&] {
      const graft_driver_table& driver = call.layer.driver();
      const graft_status again = driver.memory_map(handle, address, bytes);
      if (again == GRAFT_OK) driver.memory_unmap(handle, address, bytes);
      return again;
    });
  }
  if (status != GRAFT_OK || call.broken_by_caller) return;
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto device = ledger.devices.find(handle);
  if (device == ledger.devices.end()) return;
  const auto around = reservation(device->second, address, bytes);
  if (around == device->second.reserved.end()) return;
  ObjectLedger::hold(device->second, bytes);
  auto& memory = device->second.memory;
  auto made = memory.insert_or_assign(address, Allocation{.bytes = bytes, .mapped = true}).first;
  if (made != memory.begin() && address != around->first) {
    const auto previous = std::prev(made);
    if (previous->second.mapped && previous->first + previous->second.bytes == address) {
      join(memory, previous, made, ledger);
      made = previous;
    }
  }
  const auto next = std::next(made);
  const graft_address end = made->first + made->second.bytes;
  const bool goes_on = next != memory.end() && next->second.mapped && next->first == end;
  if (goes_on && end != around->first + around->second) join(memory, made, next, ledger);
}

void MappingBefore::memory_unmap(TraceCall& call, graft_device handle, graft_address address,
                                 uint64_t bytes) {
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto device = ledger.devices.find(handle);
  if (device == ledger.devices.end()) return;
  check_granularity(call, device->second, address, bytes);
  graft_address begin = 0;
  const Allocation* const found = ObjectLedger::around(device->second, address, &begin);
  if (found == nullptr || !found->mapped || bytes > found->bytes - (address - begin)) {
    call.caller_broke("not-mapped", range_text(address, bytes) + " is not mapped as a whole",
                      "Unmap what memory_map got, once.");
    return;
  }
  if (ledger.unfinished(found->uses)) {
    call.caller_broke("freed-in-use", "a command that uses the memory may still run",
                      "Wait for the commands that use memory before unmapping it.");
  }
  // Gone before the driver takes it: another thread may map the addresses at once.
  const Allocation whole = *found;
  ObjectLedger::let_go(device->second, bytes);
  auto& memory = device->second.memory;
  memory.erase(begin);
  if (address > begin) {
    memory[begin] = whole;
    memory[begin].bytes = address - begin;
  }
  const graft_address end = begin + whole.bytes;
  if (end > address + bytes) {
    memory[address + bytes] = whole;
    memory[address + bytes].bytes = end - (address + bytes);
  }
}

void MappingBefore::memory_unreserve(TraceCall& call, graft_device handle, graft_address address) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(handle);
  if (device == call.layer.ledger.devices.end()) return;
  const auto found = device->second.reserved.find(address);
  if (found == device->second.reserved.end()) {
    call.caller_broke("not-reserved", range_text(address, 0) + " is where no reservation begins",
                      "Give each reservation back once.");
    return;
  }
  for (const auto& [begin, allocation] : device->second.memory) {
    if (!allocation.mapped || !overlap(found->first, found->second, begin, allocation.bytes)) {
      continue;
    }
    call.caller_broke("still-mapped", range_text(begin, allocation.bytes) + " is still mapped",
                      "Unmap all of a reservation before giving it back.");
  }
  device->second.reserved.erase(found);
}

}  // namespace graft::trace
