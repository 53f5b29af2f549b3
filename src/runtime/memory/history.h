// src/runtime/memory/history.h: what happened to device memory, and how it lies now.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

// Whatever the user wants to know later about a moment, such as a stack trace. Called without a
// lock, on the allocating thread; may return null. Must not throw.
using MemoryContext = std::shared_ptr<void>;
using MemoryContextSource = MemoryContext (*)();

enum class MemoryAction {  // action_name has them in this order
  kAllocate,
  kFreeRequested,  // by the user
  kFreeCompleted,  // ready for reuse
  kSegmentAllocate,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,  // address: the free bytes of the device
  kSnapshot
};

// torch's name of an action: "alloc", "free_requested", "segment_alloc", "oom", ...
GRAFT_EXPORT const char* action_name(MemoryAction action) noexcept;

struct MemoryRecord {
  MemoryAction action;
  graft_address address;
  uint64_t bytes;
  int64_t stream;   // id
  int64_t time_ns;  // of the system's wall clock, since 1970
  MemoryContext context;
};

enum class BlockState { kActive, kPendingFree, kInactive };

struct BlockSnapshot {
  graft_address address;
  uint64_t capacity;
  uint64_t requested;  // 0 when inactive
  BlockState state;
  MemoryContext context;  // of the allocation, when it was recorded
};

struct SegmentSnapshot {
  graft_address address;
  uint64_t bytes;
  uint64_t allocated;
  uint64_t active;
  uint64_t requested;
  int64_t stream;
  bool large;
  bool mapped;                        // a part of an address range
  uint64_t pool;                      // of recordings, 0 for the shared one
  std::vector<BlockSnapshot> blocks;  // by address, without gaps
};

// How the memory lies, and the records so far, oldest first.
struct MemorySnapshot {
  std::vector<SegmentSnapshot> segments;  // by address
  std::vector<MemoryRecord> history;
};

// The last records of a device, in a ring. Thread-safe by a lock of its own.
class MemoryHistory {
 public:
  // As Allocator::record_history.
  void record(size_t entries, MemoryContextSource source);
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  // What the source returns now; null while nothing is recorded.
  MemoryContext context() const {
    const MemoryContextSource source =
        recording() ? source_.load(std::memory_order_acquire) : nullptr;
    return source != nullptr ? source() : nullptr;
  }

  void add(MemoryAction action, graft_address address, uint64_t bytes, int64_t stream,
           MemoryContext context);
  std::vector<MemoryRecord> records() const;

 private:
  std::atomic<MemoryContextSource> source_{nullptr};
  std::atomic<bool> recording_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::vector<MemoryRecord> ring_;
  size_t capacity_ = 0;
  size_t next_ = 0;
};

}  // namespace graft
