// src/runtime/memory/history.cpp: what happened to device memory, and how it lies now.
#include "runtime/memory/history.h"

#include <chrono>

namespace graft {

const char* action_name(MemoryAction action) noexcept {
  static constexpr const char* kNames[] = {
      "alloc",        "free_requested", "free_completed", "segment_alloc",
      "segment_free", "segment_map",    "segment_unmap",  "oom",
      "snapshot"};
  return kNames[static_cast<size_t>(action)];
}

void MemoryHistory::record(size_t entries, MemoryContextSource source) {
  std::vector<MemoryRecord> old;  // contexts are let go without the lock
  {
    std::lock_guard<std::mutex> lock(mutex_);
    old.swap(ring_);
    capacity_ = entries;
    next_ = 0;
  }
  source_.store(source, std::memory_order_release);
  recording_.store(entries != 0 || source != nullptr, std::memory_order_relaxed);
}

void MemoryHistory::add(MemoryAction action, graft_address address, uint64_t bytes, int64_t stream,
                        MemoryContext context) {
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  MemoryRecord record{action, address, bytes, stream, now, std::move(context)};
  std::lock_guard<std::mutex> lock(mutex_);
  if (capacity_ == 0) return;
  if (ring_.size() < capacity_) {
    ring_.push_back(std::move(record));
  } else {
    std::swap(ring_[next_], record);
    next_ = (next_ + 1) % capacity_;
  }
}

std::vector<MemoryRecord> MemoryHistory::records() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<MemoryRecord> in_order(ring_.begin() + static_cast<ptrdiff_t>(next_), ring_.end());
  in_order.insert(in_order.end(), ring_.begin(), ring_.begin() + static_cast<ptrdiff_t>(next_));
  return in_order;
}

}  // namespace graft
