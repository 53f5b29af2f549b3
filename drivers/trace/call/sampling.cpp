// drivers/trace/call/sampling.cpp: decides which calls get a closer look.
#include "call/sampling.h"

namespace graft::trace {
namespace {

constexpr uint32_t kFirstOfKind = 2;
constexpr uint32_t kFirstOfSlot = 32;
constexpr uint32_t kEachCall = 64;

}  // namespace

Sampling::Sampling(const TraceSettings& settings)
    : share_(settings.verify), first_ones_(settings.verify_new), chance_(settings.seed) {}

bool Sampling::is_new(uint64_t kind) {
  if (!first_ones_) return false;
  const std::lock_guard lock(mutex_);
  uint32_t& seen = kinds_[kind];
  if (seen == kFirstOfKind) return false;
  ++seen;
  return true;
}

bool Sampling::verifies(uint64_t kind, bool idle) {
  return (idle && is_new(kind)) || chance_.draw(share_);
}

bool Sampling::guards(size_t slot) {
  if (!first_ones_) return false;
  const uint32_t call = calls_.at(slot).fetch_add(1, std::memory_order_relaxed);
  return call < kFirstOfSlot || call % kEachCall == 0 || chance_.draw(share_);
}

}  // namespace graft::trace
