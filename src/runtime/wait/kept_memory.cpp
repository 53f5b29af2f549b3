// src/runtime/wait/kept_memory.cpp: host memory that commands may still use.
#include "runtime/wait/kept_memory.h"

#include <algorithm>
#include <iterator>

#include "runtime/wait/pending_ops.h"

namespace graft {
namespace {

constexpr uint64_t kSmall = 64;  // bytes

thread_local std::unique_ptr<std::byte[]> small;

}  // namespace

void KeptMemory::add(uint64_t commands, std::shared_ptr<const void> memory) {
  entries_.emplace_back(commands, std::move(memory));
  any_.store(true, std::memory_order_relaxed);
}

void KeptMemory::release_done(const PendingOps& ops, std::mutex& lock) noexcept {
  std::vector<Entry> done;
  const std::lock_guard held(lock);
  const auto used = [&](const Entry& one) { return one.first > ops.done(); };
  const auto rest = std::partition(entries_.begin(), entries_.end(), used);
  done.assign(std::move_iterator(rest), std::move_iterator(entries_.end()));
  entries_.erase(rest, entries_.end());
  any_.store(!entries_.empty(), std::memory_order_relaxed);
}

LandingMemory::LandingMemory(uint64_t bytes) : home_(bytes <= kSmall ? &small : nullptr) {
  if (home_ != nullptr) bytes_.swap(*home_);
  if (bytes_ == nullptr) bytes_.reset(new std::byte[std::max(bytes, kSmall)]);
}

LandingMemory::~LandingMemory() {
  if (home_ != nullptr && bytes_ != nullptr) bytes_.swap(*home_);
}

}  // namespace graft
