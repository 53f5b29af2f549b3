// src/runtime/memory/cached_segments.h: memory from a source, kept and cut into blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/memory/allocator.h"
#include "runtime/memory/block_list.h"
#include "runtime/memory/free_blocks.h"
#include "runtime/memory/segment.h"

namespace graft {

class OpenDevice;

// The segments of a CachingAllocator, their blocks, the pools of the free blocks, and the figures
// of all of them. Owns the blocks; all sizes are bytes. A block goes from free to held to pending
// and back to free. Blocks up to 1 MiB come from segments of 2 MiB, larger ones from segments of
// 20 MiB or more. Where blocks of the size that a segment of 20 MiB is added for would leave at
// most 1 MiB of it, which nobody could use, it is smaller by that. Each stream has pools of its
// own. A private pool (chosen_pool.h) has parts for each stream, and one part for all streams that
// record into it: the commands of a recording run one after another. Where mapping is wished
// (address_range.h) and possible, the blocks of the other pools come from one address range for
// each stream and kind, whose free pieces give their memory to its end. REQUIRES of each call: the
// owner's lock is held.
class CachedSegments {
 public:
  // Capacities are multiples of the device's alignment, and of 512. REQUIRES: device and source
  // outlive the segments.
  CachedSegments(OpenDevice& device, Allocator& source);

  // Gives all segments back to the source, and all ranges to the driver. Needs no lock.
  ~CachedSegments();
  CachedSegments(const CachedSegments&) = delete;
  CachedSegments& operator=(const CachedSegments&) = delete;

  // bytes rounded up to a capacity; less than bytes if that overflows. Needs no lock.
  uint64_t capacity_for(uint64_t bytes) const {
    return (bytes + granularity_ - 1) / granularity_ * granularity_;
  }

  // A free block of at least capacity from the stream's pool, null for none. It stays in its pool
  // until hold.
  CachedBlock* free_block(uint64_t capacity, const Stream& stream) {
    return pool(stream, capacity > kSmallBlock).find(capacity);
  }

  // As Allocator::close, for the address ranges; the source closes the rest.
  void close() noexcept;

  // Maps more of a range, or takes a segment from the source, of capacity bytes if it has no room
  // for the usual size, and returns a free block there. Throws what the source throws; OutOfMemory
  // means that there is no room for capacity bytes. taken: what came from the driver, for the
  // history.
  CachedBlock* add(uint64_t capacity, Stream& stream, Block* taken);

  // Gives a free block to a holder who asked for bytes. What the block has beyond capacity becomes
  // a free block.
  void hold(CachedBlock* block, uint64_t bytes, uint64_t capacity);

  // Makes a held block pending: its holder gave it back.
  void set_pending(CachedBlock* block) noexcept {
    const StatisticPool pool = block->segment->counted_in();
    statistics_.allocation.decrease(pool, 1);
    statistics_.allocated_bytes.decrease(pool, static_cast<int64_t>(block->capacity));
    statistics_.requested_bytes.decrease(pool, static_cast<int64_t>(block->bytes));
    block->state = CachedBlock::State::kPending;
  }

  // Makes a pending block free and joins it with its free neighbours: block may then be no more.
  void release(CachedBlock* block) noexcept;

  // Forgets the unused segments outside private pools and returns their memory, which the caller
  // gives back to the source.
  std::vector<Block*> release_unused() noexcept;

  // Takes the free pieces of address ranges out of their pools; the caller waits for their streams,
  // and then gives each to unmap, or to keep if the wait ended early.
  std::vector<CachedBlock*> leave_ranges() noexcept;
  void unmap(CachedBlock* block) noexcept;
  void keep(CachedBlock* block) noexcept { make_free(block); }

  // The same for the stream's segments of over 20 MiB, the largest first, until they have capacity
  // bytes together. None if capacity is 20 MiB or less.
  std::vector<Block*> release_for(uint64_t capacity, const Stream& stream) noexcept;

  // As Allocator::retain_pool and release_pool.
  void retain_pool(uint64_t pool);
  void release_pool(uint64_t pool) noexcept;

  // As Allocator::find, largest_cached, and the segments of snapshot.
  CachedBlock* held_block(graft_address address) const;
  uint64_t largest_free() const;
  std::vector<SegmentSnapshot> snapshot() const;

  // The figures. What concerns no segment (retries, waits, OUT_OF_MEMORY) the owner counts there.
  MemoryStatistics& statistics() { return statistics_; }
  const MemoryStatistics& statistics() const { return statistics_; }

 private:
  struct StreamPools {
    FreeBlocks small, large;
  };
  static constexpr int64_t kRecorded = -1;
  struct PrivatePool {
    std::map<int64_t, StreamPools> free;  // by stream id, or kRecorded for all that record
    uint32_t retained = 0;
  };
  using Segments = std::map<graft_address, std::unique_ptr<Segment>>;
  static constexpr uint64_t kSmallBlock = 1ull << 20;  // the largest block of the small pool

  using State = CachedBlock::State;

  static uint64_t segment_bytes(uint64_t capacity);
  CachedBlock* map(Segment& range, uint64_t capacity, Block* taken);
  Segment* range_of(Stream& stream, bool large);  // null where no addresses are left
  void require_room(uint64_t bytes) const;
  CachedBlock* make_free(CachedBlock* block) noexcept;
  FreeBlocks& pool(const Stream& stream, bool large);
  FreeBlocks& shared_pool(const Stream& stream, bool large);
  CachedBlock* add_sized(uint64_t bytes, Stream& stream, bool large);
  void carve(CachedBlock* block, uint64_t capacity);
  Segments::iterator forget(Segments::iterator entry, std::vector<Block*>* out) noexcept;
  void insert_free(CachedBlock* block) noexcept;
  void remove_free(CachedBlock* block) noexcept;
  void count_split(const CachedBlock* block, bool appears) noexcept;

  OpenDevice& device_;
  Allocator& source_;
  const uint64_t granularity_;
  std::vector<std::unique_ptr<StreamPools>> pools_;  // by stream id
  std::map<uint64_t, PrivatePool> private_pools_;    // the retained ones
  Segments segments_;
  BlockList blocks_;
  MemoryStatistics statistics_;
};

}  // namespace graft
