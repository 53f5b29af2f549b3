// src/runtime/memory/mapped_segments.cpp: the cached segments that are address ranges.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/memory/cached_segments.h"
#include "runtime/memory/direct_allocator.h"

namespace graft {
namespace {

int64_t signed_count(uint64_t bytes) { return static_cast<int64_t>(bytes); }

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// The stretches of a range that have memory: their begins and bytes.
std::vector<std::pair<graft_address, uint64_t>> mapped_runs(const Segment& segment) {
  std::vector<std::pair<graft_address, uint64_t>> runs;
  bool open = false;
  for (const CachedBlock* block = segment.first; block != nullptr; block = block->after) {
    const bool mapped = block->state != CachedBlock::State::kUnmapped;
    if (mapped && !open) runs.emplace_back(block->address, 0);
    if (mapped) runs.back().second += block->capacity;
    open = mapped;
  }
  return runs;
}

}  // namespace

void CachedSegments::close() noexcept {
  for (const auto& [address, segment] : segments_) {
    if (segment->range == nullptr || segment->range->begin() == 0) continue;
    for (const auto& [first, bytes] : mapped_runs(*segment)) segment->range->unmap(first, bytes);
    segment->range->close();
  }
}

Segment* CachedSegments::range_of(Stream& stream, bool large) {
  FreeBlocks* const free = &shared_pool(stream, large);
  for (auto& [address, segment] : segments_) {
    if (segment->range != nullptr && segment->pool == free) return segment.get();
  }
  auto segment = std::make_unique<Segment>();
  segment->range = AddressRange::reserve(device_);
  if (segment->range == nullptr) return nullptr;
  segment->stream = &stream;
  segment->pool = free;
  segment->large = large;
  CachedBlock* const block = segment->first = new_block();
  block->address = segment->range->begin();
  block->capacity = segment->range->bytes();
  block->stream = &stream;
  block->segment = segment.get();
  block->state = State::kUnmapped;
  return segments_.emplace(block->address, std::move(segment)).first->second.get();
}

// At the first place without memory that makes a free block of capacity bytes, together with the
// free block before it.
CachedBlock* CachedSegments::map(Segment& segment, uint64_t capacity, Block* taken) {
  const uint64_t unit = segment.range->granularity();
  CachedBlock* block = segment.first;
  uint64_t wanted = 0;
  for (; block != nullptr; block = block->after) {
    if (block->state != State::kUnmapped) continue;
    const CachedBlock* const before = block->before;
    const bool joins = before != nullptr && before->state == State::kFree;
    const uint64_t there = joins ? std::min(capacity - 1, before->capacity) : 0;
    wanted = round_up(capacity - there, unit);
    if (wanted <= block->capacity) break;
  }
  if (block == nullptr)
    throw OutOfMemory("", "nothing: no addresses are left in the reserved range");
  require_room(wanted);
  CachedBlock* const rest = block->capacity == wanted ? nullptr : new_block();
  try {
    segment.range->map(block->address, wanted);
  } catch (...) {
    if (rest != nullptr) drop_block(rest);
    throw;
  }
  if (rest != nullptr) cut(block, wanted, rest);
  taken->address = block->address;
  taken->bytes = taken->capacity = wanted;
  taken->stream = segment.stream;
  const StatisticPool pool = segment.counted_in();
  if (segment.bytes == 0) statistics_.segment.increase(pool, 1);
  segment.bytes += wanted;
  statistics_.reserved_bytes.increase(pool, signed_count(wanted));
  ++statistics_.num_device_alloc;
  return make_free(block);
}

// Whole units of each free block: what is left of it at both ends stays.
std::vector<CachedBlock*> CachedSegments::leave_ranges() noexcept {
  std::vector<CachedBlock*> leaving;
  for (auto& [address, segment] : segments_) {
    if (segment->range == nullptr) continue;
    const uint64_t unit = segment->range->granularity();
    CachedBlock* next = nullptr;
    for (CachedBlock* block = segment->first; block != nullptr; block = next) {
      next = block->after;
      if (block->state != State::kFree) continue;
      const uint64_t begin = round_up(block->address, unit);
      const uint64_t end = (block->address + block->capacity) / unit * unit;
      if (begin >= end) continue;
      remove_free(block);
      if (begin > block->address) {
        CachedBlock* const middle = new_block();
        cut(block, begin - block->address, middle);
        insert_free(block);
        block = middle;
      }
      if (end < block->address + block->capacity) {
        CachedBlock* const tail = new_block();
        cut(block, end - block->address, tail);
        insert_free(tail);
      }
      block->state = State::kLeaving;
      leaving.push_back(block);
    }
  }
  return leaving;
}

void CachedSegments::unmap(CachedBlock* block) noexcept {
  Segment& segment = *block->segment;
  segment.range->unmap(block->address, block->capacity);
  const StatisticPool pool = segment.counted_in();
  segment.bytes -= block->capacity;
  statistics_.reserved_bytes.decrease(pool, signed_count(block->capacity));
  if (segment.bytes == 0) statistics_.segment.decrease(pool, 1);
  ++statistics_.num_device_free;
  block->state = State::kUnmapped;
  if (block->after != nullptr && block->after->state == State::kUnmapped) {
    join(block, block->after);
  }
  if (block->before != nullptr && block->before->state == State::kUnmapped) {
    join(block->before, block);
  }
}

}  // namespace graft
