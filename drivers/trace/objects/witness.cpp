// drivers/trace/objects/witness.cpp: reads back what a copy or a fill wrote, and what is beside it.
#include "objects/witness.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace graft::trace {
namespace {

constexpr uint64_t kMargin = 16;          // bytes beside the range
constexpr uint64_t kMostBytes = 4 << 20;  // of a range
constexpr uint8_t kCanary = 0xa5;

void compare_ranges(TraceCall& call, const std::vector<uint8_t>& got, const uint8_t* want,
                    uint64_t begin, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (got[begin + i] == want[i]) continue;
    call.driver_broke("wrong-bytes",
                      "byte " + std::to_string(i) + " of " + std::to_string(bytes) +
                          " has the wrong value after the command",
                      "Write every byte of the range.");
    return;
  }
}

void compare_margin(TraceCall& call, const std::vector<uint8_t>& got, uint64_t begin,
                    const std::vector<uint8_t>& was, const char* where) {
  if (std::equal(was.begin(), was.end(), got.begin() + static_cast<int64_t>(begin))) return;
  call.driver_broke("overrun", std::string("bytes ") + where + " the range changed",
                    "Write nothing beside the range.");
}

}  // namespace

CopyWitness::CopyWitness(TraceCall& call, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                         std::vector<uint8_t> pattern)
    : to_(to), from_(from), bytes_(bytes), kind_(kind) {
  if (bytes == 0 || bytes > kMostBytes || call.stream == nullptr || !is_quiet(call)) return;
  if (kind_ == GRAFT_DEVICE_TO_HOST) {
    looks_ = true;
    return;
  }
  uint64_t before = 0, after = 0;
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(call.device);
    if (device == call.layer.ledger.devices.end()) return;
    commands_ = device->second.commands;
    graft_address begin = 0;
    const Allocation* around = ObjectLedger::around(device->second, to, &begin);
    if (around == nullptr || around->imported) return;
    before = std::min(kMargin, to - begin);
    after = std::min(kMargin, begin + around->bytes - to - bytes);
  }
  before_.resize(before);
  after_.resize(after);
  looks_ = read(call, before_.data(), to - before, before) &&
           read(call, after_.data(), to + bytes, after);
  if (!pattern.empty()) {
    expected_.resize(bytes);
    for (uint64_t i = 0; i < bytes; ++i) expected_[i] = pattern[i % pattern.size()];
  } else if (kind_ == GRAFT_HOST_TO_DEVICE) {
    const auto* const source = reinterpret_cast<const uint8_t*>(from);
    expected_.assign(source, source + bytes);
  }
}

bool CopyWitness::read(TraceCall& call, void* to, graft_address from, uint64_t bytes) {
  if (bytes == 0) return true;
  const graft_driver_table& driver = call.layer.driver();
  if (driver.copy(call.stream_handle, reinterpret_cast<uint64_t>(to), from, bytes,
                  GRAFT_DEVICE_TO_HOST, 0) != GRAFT_OK) {
    return false;
  }
  const graft_status status = driver.stream_synchronize(call.stream_handle);
  if (status == GRAFT_OK) return true;
  HeldError error{status, 0, call.layer.driver_text()};
  if (driver.stream_error != nullptr) {
    char text[1024] = "";
    driver.stream_error(call.stream_handle, &error.tag, text, sizeof text);
  }
  call.layer.held.set(call.stream_handle, error);
  return false;
}

bool CopyWitness::is_quiet(TraceCall& call) const {
  const std::lock_guard lock(call.layer.mutex);
  for (const auto& [handle, stream] : call.layer.ledger.streams) {
    if (stream != call.stream && stream->device == call.device && stream->done < stream->queued) {
      return false;
    }
  }
  return true;
}

void CopyWitness::compare(TraceCall& call) {
  if (!looks_) return;
  if (kind_ == GRAFT_DEVICE_TO_HOST) {
    compare_host(call);
  } else {
    compare_device(call);
  }
}

void CopyWitness::compare_device(TraceCall& call) {
  std::vector<uint8_t> got(before_.size() + bytes_ + after_.size());
  if (!read(call, got.data(), to_ - before_.size(), got.size())) return;
  if (expected_.empty()) {
    expected_.resize(bytes_);
    if (!read(call, expected_.data(), from_, bytes_)) return;
  }
  {
    const std::lock_guard lock(call.layer.mutex);
    const auto device = call.layer.ledger.devices.find(call.device);
    if (device == call.layer.ledger.devices.end() || device->second.commands != commands_) return;
  }
  if (!is_quiet(call)) return;
  compare_ranges(call, got, expected_.data(), before_.size(), bytes_);
  compare_margin(call, got, 0, before_, "before");
  compare_margin(call, got, before_.size() + bytes_, after_, "after");
}

void CopyWitness::compare_host(TraceCall& call) {
  const auto* const given = reinterpret_cast<const uint8_t*>(to_);
  std::vector<uint8_t> got(bytes_ + 2 * kMargin, kCanary);
  if (!read(call, got.data() + kMargin, from_, bytes_) || !is_quiet(call)) return;
  compare_ranges(call, got, given, kMargin, bytes_);
  const std::vector<uint8_t> canary(kMargin, kCanary);
  compare_margin(call, got, 0, canary, "before");
  compare_margin(call, got, kMargin + bytes_, canary, "after");
}

}  // namespace graft::trace
