// src/runtime/memory/pinned_allocator.h: host memory that a device copies without staging.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/driver/export.h"
#include "runtime/memory/statistics.h"
#include "runtime/stream/event.h"

namespace graft {

class OpenDevice;
class PinnedAllocator;
class Stream;

// A piece of pinned host memory; owned by its allocator, given back by free.
struct PinnedBlock {
  void* pointer = nullptr;
  uint64_t bytes = 0;     // as asked for
  uint64_t capacity = 0;  // a power of two
  PinnedAllocator* allocator = nullptr;
};

// Pinned memory of one device, kept for reuse. Thread-safe. A block that streams were recorded on
// is reused only when their commands of the time of free are done (a failed one counts as done).
// Where the driver has no host_allocate the memory is ordinary, aligned to 4096 bytes.
class GRAFT_EXPORT PinnedAllocator {
 public:
  explicit PinnedAllocator(OpenDevice& device);
  ~PinnedAllocator();

  // REQUIRES: bytes > 0. Throws Error OUT_OF_MEMORY after the cache was emptied in vain.
  PinnedBlock* allocate(uint64_t bytes);

  // Takes a block back, also before its copies are done. Does nothing in a forked child.
  void free(PinnedBlock* block) noexcept;

  // A command of stream (of any device) reads or writes the block.
  void record_stream(PinnedBlock* block, Stream& stream);

  // The block's memory goes to nobody else while the result lives, not even after free. For
  // recordings, whose replays use it again. REQUIRES: the result dies before the allocator.
  std::shared_ptr<const void> retain(PinnedBlock* block);

  // The held block that covers the pointer, null for none: whether memory is pinned.
  PinnedBlock* find(const void* pointer) const;

  // Gives unused memory back; waits for the streams that use freed blocks.
  void empty_cache();

  // Gives all memory back that nobody holds. What is held stays, for good: tensors of the CPU may
  // read it until the process ends. REQUIRES: no command is left and none will come.
  void close() noexcept;

  // Bytes that users hold, and bytes held in all; allocation and segment count their pieces.
  struct Statistics {
    Statistic allocated_bytes, reserved_bytes, allocation, segment;
  };
  Statistics statistics() const;

  // Peaks become the current values; or the sums become 0.
  void reset_peak();
  void reset_accumulated();

 private:
  struct Piece : PinnedBlock {
    bool held = false;
    uint32_t retained = 0;
    std::vector<Stream*> users;
    std::vector<std::unique_ptr<Event>> marks;
    bool in_use = false;  // by commands without a mark, for which a wait ended early
  };

  void* take(uint64_t bytes);
  void give_back(void* pointer) noexcept;
  void release(Piece* piece) noexcept;
  void wait_for_pending() noexcept;
  // REQUIRES for all below: mutex_ is held.
  void shelve(Piece* piece);
  void reclaim() noexcept;
  void release_cached() noexcept;

  OpenDevice& device_;
  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::map<uintptr_t, Piece> pieces_;
  std::map<uint64_t, std::vector<Piece*>> free_;  // by capacity
  std::vector<Piece*> pending_;
  Statistics statistics_;
};

}  // namespace graft
