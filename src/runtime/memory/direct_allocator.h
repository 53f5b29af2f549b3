// src/runtime/memory/direct_allocator.h: device memory straight from the driver, with nothing kept.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/driver/open_device.h"
#include "runtime/memory/allocator.h"

namespace graft {

// Every allocate calls memory_allocate, every free waits for the streams that use the block and
// calls memory_free, unless the wait ends early: then the memory stays until close. The source of
// segments for CachingAllocator, and the whole allocator under GRAFT_NO_CACHING=1, where a use
// after free meets memory that is gone. Enforces the limit.
class DirectAllocator final : public Allocator {
 public:
  // REQUIRES: device outlives the allocator.
  explicit DirectAllocator(OpenDevice& device) : device_(device) {}
  ~DirectAllocator() override;

  Block* allocate(uint64_t bytes, Stream& stream) override;
  void free(Block* block) noexcept override;
  void record_stream(Block* block, Stream& stream) override;
  void empty_cache() override {}
  void retain_pool(uint64_t pool) override;
  void release_pool(uint64_t pool) noexcept override;
  MemoryStatistics statistics() const override;
  void reset_peak() override;
  void reset_accumulated() override;
  void set_limit(uint64_t bytes) override;
  uint64_t limit() const override;
  uint64_t largest_cached() const override { return 0; }
  void record_history(size_t entries, MemoryContextSource source) override {
    history_.record(entries, source);
  }
  MemorySnapshot snapshot() const override;
  void close() noexcept override;
  Block* find(graft_address address) override;

 private:
  struct Piece : Block {
    std::vector<Stream*> users;  // beside the own stream
    MemoryContext context;
    uint64_t pool = 0;
    bool parked = false;  // freed, but its pool is retained, or commands use it
  };

  void count(StatisticPool pool, uint64_t bytes, bool taken);  // REQUIRES: mutex_ is held
  [[noreturn]] void out_of_memory(uint64_t bytes, bool driver_refused);

  OpenDevice& device_;
  mutable std::mutex mutex_;
  std::map<graft_address, Piece> pieces_;
  std::map<uint64_t, uint32_t> retained_;  // how often, by pool
  MemoryStatistics statistics_;
  uint64_t limit_ = 0;
  bool closed_ = false;  // guarded by mutex_
  MemoryHistory history_;
};

// An Error OUT_OF_MEMORY that remembers what the driver said, for the decorator's own text.
struct OutOfMemory : Error {
  OutOfMemory(const std::string& text, std::string says)
      : Error(GRAFT_OUT_OF_MEMORY, text), driver_says(std::move(says)) {}
  std::string driver_says;
};

// Free and total bytes, as well as can be known. Never throws.
MemoryInfo memory_left(OpenDevice& device, const MemoryStatistics& statistics);

// The text of an OUT_OF_MEMORY error of a device: what was asked for, what there is, what to do.
std::string out_of_memory_text(OpenDevice& device, uint64_t bytes,
                               const MemoryStatistics& statistics, uint64_t limit,
                               const std::string& driver_says);

}  // namespace graft
