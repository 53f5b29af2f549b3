// src/runtime/memory/caching_allocator.h: keeps freed device memory and hands it out again.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/memory/allocator.h"
#include "runtime/memory/block_users.h"
#include "runtime/memory/cached_segments.h"

namespace graft {

// A decorator: takes segments from another allocator and cuts them up. Sizes are rounded up to 512
// bytes (or the device's alignment). Each stream has pools of its own, so that freed memory is
// reused in stream order without waiting. A block that other streams use (record_stream) becomes
// free when an event on each has passed (block_users.h). Before a segment is added for a block over
// 20 MiB, unused ones of that kind, which were too small for it, go back to the source until as
// much is released: reserved memory stays near the peak of what was in use. Out of memory: the
// streams that use pending blocks are waited for, the cache is emptied, and the request is tried
// once more; memory of free pieces in address ranges is mapped anew. A block that a wait ended
// early for stays pending. One lock per allocator, held while the source allocates. Events are
// recorded, streams waited for and segments given back without it: a thread that wants it may hold
// Python's lock.
class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(OpenDevice& device, std::unique_ptr<Allocator> source);

  Block* allocate(uint64_t bytes, Stream& stream) override;
  void free(Block* block) noexcept override;
  void record_stream(Block* block, Stream& stream) override;
  void empty_cache() override;
  void retain_pool(uint64_t pool) override;
  void release_pool(uint64_t pool) noexcept override;
  MemoryStatistics statistics() const override;
  void reset_peak() override;
  void reset_accumulated() override;
  void set_limit(uint64_t bytes) override;
  uint64_t limit() const override;
  uint64_t largest_cached() const override;
  void record_history(size_t entries, MemoryContextSource source) override {
    history_.record(entries, source);
  }
  MemorySnapshot snapshot() const override;
  void close() noexcept override;
  Block* find(graft_address address) override;

 private:
  using Lock = std::unique_lock<std::mutex>;  // of mutex_; what takes one may let it go meanwhile

  // REQUIRES for all below: mutex_ is held.
  CachedBlock* add_segment(uint64_t capacity, Stream& stream);
  CachedBlock* add_segment_or_retry(uint64_t bytes, uint64_t capacity, Stream& stream, Lock& lock);
  void release(CachedBlock* block) noexcept;
  void reclaim() noexcept;
  void wait_for_pending(Lock& lock) noexcept;
  void give_back(const std::vector<Block*>& sources, Lock& lock) noexcept;
  void unmap_free(Lock& lock) noexcept;
  void note(MemoryAction action, const Block& block, MemoryContext context);

  OpenDevice& device_;
  MemoryHistory history_;

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<Allocator> source_;
  BlockUsers users_;
  CachedSegments segments_;
};

}  // namespace graft
