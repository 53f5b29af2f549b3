// drivers/trace/objects/witness.cpp: reads back what a copy or a fill wrote, and what is beside it.
#include "objects/witness.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "objects/readback.h"

namespace graft::trace {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;  // of a range
constexpr uint64_t kPatternBytes = 16;    // the longest
constexpr uint8_t kCanary = 0xa5;

void compare_ranges(TraceCall& call, const std::vector<uint8_t>& got, const uint8_t* want,
                    uint64_t begin, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (got[begin + i] != want[i]) return report_wrong_byte(call, i, bytes);
  }
}

void compare_margin(TraceCall& call, const std::vector<uint8_t>& got, uint64_t begin,
                    const std::vector<uint8_t>& was, const char* where) {
  if (std::equal(was.begin(), was.end(), got.begin() + static_cast<int64_t>(begin))) return;
  report_overrun(call, std::string(where) + " the range");
}

}  // namespace

CopyWitness::CopyWitness(TraceCall& call, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
                         std::vector<uint8_t> pattern)
    : to_(to), from_(from), bytes_(bytes), kind_(kind) {
  if (bytes == 0 || call.stream == nullptr || !is_quiet(call)) return;
  uint64_t skipped = 0;
  if (bytes > kMostBytes) {  // of a long range the end, without splitting a pattern
    skipped = (bytes - kMostBytes) / kPatternBytes * kPatternBytes;
    to_ = to += skipped;
    from_ = from += skipped;
    bytes_ = bytes -= skipped;
  }
  if (kind_ == GRAFT_DEVICE_TO_HOST) {
    looks_ = true;
    return;
  }
  commands_ = commands_so_far(call);
  auto [before, after] = margin_around(call, to, bytes);
  if (skipped != 0) before = 0;  // they belong to the range
  before_.resize(before);
  after_.resize(after);
  looks_ = read_back(call, before_.data(), to - before, before) &&
           read_back(call, after_.data(), to + bytes, after);
  if (!pattern.empty()) {
    expected_.resize(bytes);
    for (uint64_t i = 0; i < bytes; ++i) expected_[i] = pattern[i % pattern.size()];
  } else if (kind_ == GRAFT_HOST_TO_DEVICE) {
    const auto* const source = reinterpret_cast<const uint8_t*>(from);
    expected_.assign(source, source + bytes);
  }
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
  if (!read_back(call, got.data(), to_ - before_.size(), got.size())) return;
  if (expected_.empty()) {
    expected_.resize(bytes_);
    if (!read_back(call, expected_.data(), from_, bytes_)) return;
  }
  if (commands_so_far(call) != commands_) return;
  if (!is_quiet(call)) return;
  compare_ranges(call, got, expected_.data(), before_.size(), bytes_);
  compare_margin(call, got, 0, before_, "before");
  compare_margin(call, got, before_.size() + bytes_, after_, "after");
}

void CopyWitness::compare_host(TraceCall& call) {
  const auto* const given = reinterpret_cast<const uint8_t*>(to_);
  std::vector<uint8_t> got(bytes_ + 2 * kMostMargin, kCanary);
  if (!read_back(call, got.data() + kMostMargin, from_, bytes_) || !is_quiet(call)) return;
  compare_ranges(call, got, given, kMostMargin, bytes_);
  const std::vector<uint8_t> canary(kMostMargin, kCanary);
  compare_margin(call, got, 0, canary, "before");
  compare_margin(call, got, kMostMargin + bytes_, canary, "after");
}

}  // namespace graft::trace
