// drivers/trace/objects/ledger.cpp: what is alive in one driver: devices, memory, streams, events,
// programs.
#include "objects/ledger.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace graft::trace {

uint64_t steady_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t calling_thread() {
  thread_local const auto id = static_cast<uint64_t>(syscall(SYS_gettid));
  return id;
}

void ObjectLedger::complete(StreamRecord& stream, uint64_t number, uint32_t good_ticket,
                            bool good) {
  if (good) {
    stream.told = stream.told && number <= stream.good;
    stream.good = std::max(stream.good, number);
    stream.good_ticket = std::max(stream.good_ticket, good_ticket);
    while (!stream.tags.empty() && stream.tags.front().command <= stream.good) {
      stream.tags.pop_front();
    }
  }
  if (number <= stream.done) return;
  stream.done = number;
  std::erase_if(stream.results, [&](const Result& one) {
    const bool has_come = one.command <= number;
    if (has_come && tell) tell(one);
    return has_come;
  });
  std::vector<StreamWait> ended;
  const auto later = std::partition(stream.waits.begin(), stream.waits.end(),
                                    [&](const StreamWait& wait) { return wait.command > number; });
  ended.assign(later, stream.waits.end());
  stream.waits.erase(later, stream.waits.end());
  for (const StreamWait& wait : ended) {
    const auto other = stream_ids.find(wait.mark.stream);
    if (other == stream_ids.end()) continue;
    complete(*other->second, wait.mark.number, wait.mark_ticket, good);
  }
}

void ObjectLedger::hold(DeviceRecord& device, uint64_t bytes) {
  device.held_bytes += bytes;
  device.most_bytes = std::max(device.most_bytes, device.held_bytes);
  ++device.changes;
}

void ObjectLedger::let_go(DeviceRecord& device, uint64_t bytes) {
  device.held_bytes -= std::min(device.held_bytes, bytes);
  ++device.changes;
}

HostBlock* ObjectLedger::pinned(DeviceRecord& device, uint64_t address, uint64_t* out_begin) {
  auto next = device.host.upper_bound(address);
  if (next == device.host.begin()) return nullptr;
  --next;
  if (address - next->first >= next->second.bytes) return nullptr;
  *out_begin = next->first;
  return &next->second;
}

std::optional<CommandPlace> ObjectLedger::unfinished(const std::vector<CommandPlace>& uses) const {
  for (const CommandPlace& place : uses) {
    const auto stream = stream_ids.find(place.stream);
    if (stream != stream_ids.end() && stream->second->done < place.number) return place;
  }
  return std::nullopt;
}

void ObjectLedger::use(std::vector<CommandPlace>& uses, CommandPlace place) const {
  for (CommandPlace& known : uses) {
    if (known.stream == place.stream) {
      known.number = std::max(known.number, place.number);
      return;
    }
  }
  uses.push_back(place);
}

Allocation* ObjectLedger::around(DeviceRecord& device, graft_address address,
                                 graft_address* out_begin) {
  auto next = device.memory.upper_bound(address);
  if (next == device.memory.begin()) return nullptr;
  --next;
  Allocation& found = next->second;
  if (!found.imported && address - next->first > found.bytes) return nullptr;
  *out_begin = next->first;
  return &found;
}

const char* ObjectLedger::fate_of(const void* handle) const {
  return ended.contains(handle) ? "was destroyed" : "is not known to this driver";
}

}  // namespace graft::trace
