// src/runtime/memory/caching_allocator.h: keeps freed device memory and hands it out again.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/memory/allocator.h"
#include "runtime/memory/chosen_pool.h"
#include "runtime/memory/free_blocks.h"
#include "runtime/stream/event.h"

namespace graft {

// A piece of memory from the source, cut into blocks of one stream and one pool.
struct Segment {
  Block* source = nullptr;
  CachedBlock* first = nullptr;
  Stream* stream = nullptr;
  FreeBlocks* pool = nullptr;  // where its free blocks are
  uint64_t bytes = 0;
  bool large = false;
  uint32_t in_use = 0;        // blocks that are held or pending
  uint64_t private_pool = 0;  // the retained pool that it belongs to
};

// A decorator: takes segments from another allocator and cuts them up. Sizes are rounded up to 512
// bytes (or the device's alignment). Blocks up to 1 MiB come from segments of 2 MiB, larger ones
// from segments of at least 20 MiB; each stream has pools of its own, so that freed memory is
// reused in stream order without waiting. A block that other streams use (record_stream) becomes
// free when an event on each has passed; a failed command counts as done. Before a segment is
// added for a block over 20 MiB, unused ones of that kind, which were too small for it, go back to
// the source until as much is released: reserved memory stays near the peak of what was in use.
// Out of memory: the streams that use pending blocks are waited for, the cache is emptied, and the
// request is tried once more. A block that a wait ended early for stays pending. Streams that
// record share the pool of their recording, whose commands run one after another. A pool that a
// thread chose (chosen_pool.h) has parts for each stream. One lock per allocator, held while the
// source allocates. Events are recorded, streams waited for and segments given back without it: a
// thread that wants it may hold Python's lock.
class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(Device& device, std::unique_ptr<Allocator> source);
  ~CachingAllocator() override;

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
  void record_history(size_t entries, MemoryContextSource source) override;
  MemorySnapshot snapshot() const override;
  void close() noexcept override;
  Block* find(graft_address address) override;

 private:
  struct StreamPools {
    FreeBlocks small, large;
  };
  static constexpr int64_t kRecorded = -1;
  struct PrivatePool {
    std::map<int64_t, StreamPools> free;  // by stream id, or kRecorded for all that record
    uint32_t retained = 0;
  };
  struct Mark {
    std::unique_ptr<Event> event;
    CachedBlock* block;
  };

  using Segments = std::map<graft_address, std::unique_ptr<Segment>>;
  using Lock = std::unique_lock<std::mutex>;  // of mutex_; what takes one may let it go meanwhile

  // REQUIRES for all below: mutex_ is held, unless said otherwise.
  FreeBlocks& pool(const Stream& stream, bool large);
  FreeBlocks& shared_pool(const Stream& stream, bool large);
  void carve(CachedBlock* block, uint64_t capacity);
  CachedBlock* add_segment(uint64_t capacity, Stream& stream, bool large);
  CachedBlock* add_segment_or_retry(uint64_t bytes, uint64_t capacity, Stream& stream, Lock& lock);
  void hold(CachedBlock* block, uint64_t bytes);
  void release(CachedBlock* block) noexcept;
  CachedBlock* join(CachedBlock* low, CachedBlock* high) noexcept;
  void reclaim() noexcept;
  void wait_for_pending(Lock& lock) noexcept;
  void release_cached(Lock& lock) noexcept;
  void make_room(uint64_t bytes, const Stream& stream, Lock& lock) noexcept;
  Segments::iterator release_segment(Segments::iterator entry, std::vector<Block*>* out) noexcept;
  void give_back(const std::vector<Block*>& sources, Lock& lock) noexcept;
  void pass(Mark& mark) noexcept;
  void insert_free(CachedBlock* block) noexcept;
  void remove_free(CachedBlock* block) noexcept;
  void count_split(const CachedBlock* block, bool appears) noexcept;
  CachedBlock* new_block();
  void drop_block(CachedBlock* block) noexcept;
  // Takes the lock itself. out_lasting: a user that no mark stands for may use it for good.
  std::vector<Mark> mark_users(CachedBlock* block, bool* out_lasting) noexcept;
  MemoryContext context() const;  // without the lock
  void note(MemoryAction action, const Block& block, MemoryContext context);

  Device& device_;
  const uint64_t granularity_;
  MemoryHistory history_;
  std::atomic<MemoryContextSource> context_source_{nullptr};
  std::atomic<bool> recording_{false};

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<Allocator> source_;
  std::vector<std::unique_ptr<StreamPools>> pools_;  // by stream id
  std::map<uint64_t, PrivatePool> private_pools_;    // the retained ones
  Segments segments_;
  std::unordered_map<CachedBlock*, std::vector<Stream*>> users_;  // of blocks that are shared
  std::map<Stream*, std::deque<Mark>> marks_;  // oldest first; no empty queue stays
  std::vector<std::unique_ptr<Event>> spare_events_;
  std::deque<CachedBlock> blocks_;  // all objects ever made; spare_ links the unused ones
  CachedBlock* spare_ = nullptr;
  MemoryStatistics statistics_;
};

}  // namespace graft
