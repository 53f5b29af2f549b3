// drivers/trace/objects/landing.cpp: signs in pinned memory.
#include "objects/landing.h"

#include <algorithm>
#include <iterator>

namespace graft::trace {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kLeastBytes = 8 * kWord;

// A number that no copy writes by chance: the finalizer of SplitMix64 (Steele, Lea and Flood,
// 2014).
uint64_t fresh_sign(uint64_t seed) {
  static std::atomic<uint64_t> count{0};
  uint64_t z = seed + ++count * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// The driver may write the word at the same time if it reported the copy too early.
__attribute__((no_sanitize("thread"))) bool is_there(const Landing& landing) {
  return *landing.at == landing.sign;
}

}  // namespace

void put_signs(TraceCall& call, uint64_t to, uint64_t bytes) {
  StreamRecord& stream = *call.stream;
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device == call.layer.ledger.devices.end() || bytes < kLeastBytes || stream.count != 1) return;
  if (call.layer.faults.any() || !call.layer.settings.probe) return;
  uint64_t begin = 0;
  const HostBlock* const block = ObjectLedger::pinned(device->second, to, &begin);
  if (block == nullptr || block->count != 1 || bytes > block->bytes - (to - begin)) return;
  if (call.layer.ledger.unfinished(block->uses) || stream.last_callback > stream.done) return;
  const uint64_t first = (to + kWord - 1) / kWord * kWord;
  const uint64_t words = (to + bytes - first) / kWord;
  for (const uint64_t word : {uint64_t{0}, words / 2, words - 1}) {
    auto* const at = reinterpret_cast<volatile uint64_t*>(first + word * kWord);
    const uint64_t sign = fresh_sign(to);
    call.overwritten.push_back({call.command, at, *at});
    *at = sign;
    stream.landings.push_back({call.command, at, sign});
  }
}

void take_signs_back(TraceCall& call) {
  if (call.overwritten.empty()) return;
  const std::lock_guard lock(call.layer.mutex);
  for (const Landing& one : call.overwritten) *one.at = one.sign;
  std::erase_if(call.stream->landings,
                [&](const Landing& one) { return one.command == call.command; });
}

bool have_landed(StreamRecord& stream, uint64_t number) {
  const auto due = [&](const Landing& one) { return one.command <= number; };
  const bool landed = std::none_of(stream.landings.begin(), stream.landings.end(),
                                   [&](const Landing& one) { return due(one) && is_there(one); });
  std::erase_if(stream.landings, due);
  return landed;
}

void forget_signs(ObjectLedger& ledger, uint64_t begin, uint64_t bytes) {
  for (const auto& [id, stream] : ledger.stream_ids) {
    std::erase_if(stream->landings, [&](const Landing& one) {
      return reinterpret_cast<uint64_t>(one.at) - begin < bytes;
    });
  }
}

}  // namespace graft::trace
