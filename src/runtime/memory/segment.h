// src/runtime/memory/segment.h: a piece of memory that is cut into blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/memory/address_range.h"
#include "runtime/memory/free_blocks.h"
#include "runtime/memory/history.h"
#include "runtime/memory/statistics.h"

namespace graft {

// A piece of memory from the source, or an address range, cut into blocks of one stream and one
// pool.
struct Segment {
  Block* source = nullptr;              // null of a range
  std::unique_ptr<AddressRange> range;  // of which bytes are mapped
  CachedBlock* first = nullptr;
  Stream* stream = nullptr;
  FreeBlocks* pool = nullptr;  // where its free blocks are
  uint64_t bytes = 0;
  bool large = false;
  uint32_t in_use = 0;        // blocks that are held or pending
  uint64_t private_pool = 0;  // the retained pool that it belongs to

  StatisticPool counted_in() const { return large ? kLargePool : kSmallPool; }
};

// The stretches of a range that have memory: their begins and bytes, by address.
std::vector<std::pair<graft_address, uint64_t>> mapped_runs(const Segment& segment);

// Appends the segment to all; of a range each stretch that has memory.
void append_snapshot(const Segment& segment, std::vector<SegmentSnapshot>& all);

}  // namespace graft
