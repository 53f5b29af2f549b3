// src/runtime/memory/cached_segments.cpp: memory from a source, kept and cut into blocks.
#include "runtime/memory/cached_segments.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/driver/open_device.h"
#include "runtime/memory/chosen_pool.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

constexpr uint64_t kGranularity = 512;
constexpr uint64_t kSmallSegment = 2ull << 20;
constexpr uint64_t kLargeSegment = 20ull << 20;  // for blocks under half of it
constexpr uint64_t kLargeRounding = 2ull << 20;  // of the segments of larger blocks

int64_t signed_bytes(uint64_t bytes) { return static_cast<int64_t>(bytes); }

SegmentSnapshot empty_snapshot(const Segment& segment, graft_address address) {
  const bool mapped = segment.range != nullptr;
  return {address, 0, 0, 0, 0, segment.stream->id(), segment.large, mapped, segment.private_pool,
          {}};
}

void add_to(SegmentSnapshot& whole, const CachedBlock& block) {
  using State = CachedBlock::State;
  const bool held = block.state == State::kHeld, pending = block.state == State::kPending;
  whole.bytes += block.capacity;
  if (held) whole.allocated += block.capacity;
  if (held || pending) whole.active += block.capacity;
  if (held) whole.requested += block.bytes;
  const BlockState state = held      ? BlockState::kActive
                           : pending ? BlockState::kPendingFree
                                     : BlockState::kInactive;
  whole.blocks.push_back(
      {block.address, block.capacity, held || pending ? block.bytes : 0, state, block.context});
}

}  // namespace

CachedSegments::CachedSegments(OpenDevice& device, Allocator& source)
    : device_(device),
      source_(source),
      granularity_(std::max(kGranularity, device.properties().allocation_alignment)) {}

CachedSegments::~CachedSegments() {
  close();
  for (const auto& [address, segment] : segments_) {
    if (segment->range == nullptr) source_.free(segment->source);
  }
}

uint64_t CachedSegments::segment_bytes(uint64_t capacity) {
  if (capacity <= kSmallBlock) return std::max(kSmallSegment, capacity);
  if (capacity < kLargeSegment / 2) return kLargeSegment;
  return (capacity + kLargeRounding - 1) / kLargeRounding * kLargeRounding;
}

FreeBlocks& CachedSegments::pool(const Stream& stream, bool large) {
  const auto found = private_pools_.find(pool_for(stream));
  if (found == private_pools_.end()) return shared_pool(stream, large);
  StreamPools& free = found->second.free[stream.memory_pool() == 0 ? stream.id() : kRecorded];
  return large ? free.large : free.small;
}

FreeBlocks& CachedSegments::shared_pool(const Stream& stream, bool large) {
  const auto id = static_cast<size_t>(stream.id());
  if (id >= pools_.size()) pools_.resize(id + 1);
  if (pools_[id] == nullptr) pools_[id] = std::make_unique<StreamPools>();
  return large ? pools_[id]->large : pools_[id]->small;
}

CachedBlock* CachedSegments::add(uint64_t capacity, Stream& stream, Block* taken) {
  const bool large = capacity > kSmallBlock;
  const bool own_pool = private_pools_.contains(pool_for(stream));
  if (!own_pool && mapping_is_wished() && AddressRange::possible(device_)) {
    if (Segment* const range = range_of(stream, large)) return map(*range, capacity, taken);
  }
  const uint64_t whole = segment_bytes(capacity);
  CachedBlock* block = nullptr;
  try {
    block = add_sized(whole, stream, large);
  } catch (const OutOfMemory&) {
    if (whole == capacity) throw;
  }
  if (block == nullptr) block = add_sized(capacity, stream, large);
  *taken = *block->segment->source;
  return block;
}

void CachedSegments::require_room(uint64_t bytes) const {
  const uint64_t limit = source_.limit();
  const auto held = static_cast<uint64_t>(statistics_.reserved_bytes.all().current);
  if (limit == 0 || (bytes <= limit && held <= limit - bytes)) return;
  throw OutOfMemory("", "nothing: the limit of this process stopped the allocation");
}

CachedBlock* CachedSegments::add_sized(uint64_t bytes, Stream& stream, bool large) {
  require_room(bytes);
  CachedBlock* block = new_block();
  auto segment = std::make_unique<Segment>();
  try {
    segment->source = source_.allocate(bytes, stream);
  } catch (...) {
    drop_block(block);
    throw;
  }
  segment->first = block;
  segment->stream = &stream;
  segment->pool = &pool(stream, large);
  segment->bytes = bytes;
  segment->large = large;
  if (private_pools_.contains(pool_for(stream))) segment->private_pool = pool_for(stream);
  block->address = segment->source->address;
  block->capacity = bytes;
  block->stream = &stream;
  block->segment = segment.get();
  block->state = CachedBlock::State::kFree;
  insert_free(block);
  const StatisticPool pool = segment->counted_in();
  statistics_.segment.increase(pool, 1);
  statistics_.reserved_bytes.increase(pool, signed_bytes(bytes));
  ++statistics_.num_device_alloc;
  segments_.emplace(block->address, std::move(segment));
  return block;
}

void CachedSegments::hold(CachedBlock* block, uint64_t bytes, uint64_t capacity) {
  carve(block, capacity);
  block->state = CachedBlock::State::kHeld;
  block->bytes = bytes;
  ++block->segment->in_use;
  const StatisticPool pool = block->segment->counted_in();
  statistics_.allocation.increase(pool, 1);
  statistics_.active.increase(pool, 1);
  statistics_.allocated_bytes.increase(pool, signed_bytes(block->capacity));
  statistics_.active_bytes.increase(pool, signed_bytes(block->capacity));
  statistics_.requested_bytes.increase(pool, signed_bytes(bytes));
}

void CachedSegments::carve(CachedBlock* block, uint64_t capacity) {
  const uint64_t rest = block->capacity - capacity;
  // A rest under 1 MiB in the large pool fits no request of its own.
  const bool split = block->segment->large ? rest > kSmallBlock : rest >= granularity_;
  CachedBlock* tail = split ? new_block() : nullptr;
  remove_free(block);
  if (tail == nullptr) return;
  cut(block, capacity, tail);
  insert_free(tail);
}

void CachedSegments::cut(CachedBlock* block, uint64_t capacity, CachedBlock* tail) noexcept {
  tail->address = block->address + capacity;
  tail->capacity = block->capacity - capacity;
  tail->stream = block->stream;
  tail->segment = block->segment;
  tail->state = block->state;
  tail->before = block;
  tail->after = block->after;
  if (tail->after != nullptr) tail->after->before = tail;
  block->after = tail;
  block->capacity = capacity;
}

void CachedSegments::release(CachedBlock* block) noexcept {
  const StatisticPool pool = block->segment->counted_in();
  statistics_.active.decrease(pool, 1);
  statistics_.active_bytes.decrease(pool, signed_bytes(block->capacity));
  --block->segment->in_use;
  if (block->context != nullptr) block->context.reset();
  make_free(block);
}

CachedBlock* CachedSegments::make_free(CachedBlock* block) noexcept {
  block->state = CachedBlock::State::kFree;
  if (block->after != nullptr && block->after->state == CachedBlock::State::kFree) {
    remove_free(block->after);
    block = join(block, block->after);
  }
  if (block->before != nullptr && block->before->state == CachedBlock::State::kFree) {
    remove_free(block->before);
    block = join(block->before, block);
  }
  insert_free(block);
  return block;
}

CachedBlock* CachedSegments::join(CachedBlock* low, CachedBlock* high) noexcept {
  low->capacity += high->capacity;
  low->after = high->after;
  if (low->after != nullptr) low->after->before = low;
  drop_block(high);
  return low;
}

void CachedSegments::count_split(const CachedBlock* block, bool appears) noexcept {
  if (block->before == nullptr && block->after == nullptr) return;
  const StatisticPool pool = block->segment->counted_in();
  if (appears) {
    statistics_.inactive_split.increase(pool, 1);
    statistics_.inactive_split_bytes.increase(pool, signed_bytes(block->capacity));
  } else {
    statistics_.inactive_split.decrease(pool, 1);
    statistics_.inactive_split_bytes.decrease(pool, signed_bytes(block->capacity));
  }
}

void CachedSegments::insert_free(CachedBlock* block) noexcept {
  block->segment->pool->insert(block);
  count_split(block, true);
}

void CachedSegments::remove_free(CachedBlock* block) noexcept {
  block->segment->pool->remove(block);
  count_split(block, false);
}

CachedBlock* CachedSegments::new_block() {
  if (spare_ == nullptr) return &blocks_.emplace_back();
  CachedBlock* block = spare_;
  spare_ = block->next;
  return block;
}

void CachedSegments::drop_block(CachedBlock* block) noexcept {
  block->before = block->after = block->previous = nullptr;
  block->segment = nullptr;
  block->next = spare_;
  spare_ = block;
}

std::vector<Block*> CachedSegments::release_unused() noexcept {
  std::vector<Block*> sources;
  for (auto entry = segments_.begin(); entry != segments_.end();) {
    const Segment& segment = *entry->second;
    const bool unused =
        segment.in_use == 0 && segment.private_pool == 0 && segment.range == nullptr;
    entry = unused ? forget(entry, &sources) : std::next(entry);
  }
  return sources;
}

std::vector<Block*> CachedSegments::release_for(uint64_t capacity, const Stream& stream) noexcept {
  std::vector<Block*> sources;
  if (capacity <= kLargeSegment) return sources;
  uint64_t released = 0;
  while (released < capacity) {
    auto largest = segments_.end();
    for (auto entry = segments_.begin(); entry != segments_.end(); ++entry) {
      const Segment& segment = *entry->second;
      if (segment.in_use != 0 || segment.private_pool != 0 || segment.stream != &stream) continue;
      if (segment.bytes <= kLargeSegment || segment.range != nullptr) continue;
      if (largest == segments_.end() || segment.bytes > largest->second->bytes) largest = entry;
    }
    if (largest == segments_.end()) break;
    released += largest->second->bytes;
    forget(largest, &sources);
  }
  return sources;
}

CachedSegments::Segments::iterator CachedSegments::forget(Segments::iterator entry,
                                                          std::vector<Block*>* out) noexcept {
  Segment& segment = *entry->second;
  remove_free(segment.first);
  drop_block(segment.first);
  const StatisticPool pool = segment.counted_in();
  statistics_.segment.decrease(pool, 1);
  statistics_.reserved_bytes.decrease(pool, signed_bytes(segment.bytes));
  ++statistics_.num_device_free;
  out->push_back(segment.source);
  return segments_.erase(entry);
}

void CachedSegments::retain_pool(uint64_t pool) { ++private_pools_[pool].retained; }

void CachedSegments::release_pool(uint64_t pool) noexcept {
  const auto found = private_pools_.find(pool);
  if (found == private_pools_.end() || --found->second.retained != 0) return;
  for (auto& [address, segment] : segments_) {
    if (segment->private_pool != pool) continue;
    segment->private_pool = 0;
    FreeBlocks* const from = segment->pool;
    segment->pool = &shared_pool(*segment->stream, segment->large);
    for (CachedBlock* block = segment->first; block != nullptr; block = block->after) {
      if (block->state != CachedBlock::State::kFree) continue;
      from->remove(block);
      segment->pool->insert(block);
    }
  }
  private_pools_.erase(found);
}

CachedBlock* CachedSegments::held_block(graft_address address) const {
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return nullptr;
  const Segment& segment = *std::prev(after)->second;
  for (CachedBlock* block = segment.first; block != nullptr; block = block->after) {
    if (address - block->address < block->capacity) {
      return block->state == CachedBlock::State::kHeld ? block : nullptr;
    }
  }
  return nullptr;
}

uint64_t CachedSegments::largest_free() const {
  uint64_t most = 0;
  for (const auto& pools : pools_) {
    if (pools == nullptr) continue;
    most = std::max({most, pools->small.largest(), pools->large.largest()});
  }
  return most;
}

std::vector<SegmentSnapshot> CachedSegments::snapshot() const {
  std::vector<SegmentSnapshot> all;
  for (const auto& [address, segment] : segments_) {
    bool open = false;  // a range is a segment for each stretch with memory
    for (const CachedBlock* block = segment->first; block != nullptr; block = block->after) {
      if (block->state == State::kUnmapped) {
        open = false;
        continue;
      }
      if (!std::exchange(open, true)) all.push_back(empty_snapshot(*segment, block->address));
      add_to(all.back(), *block);
    }
  }
  return all;
}

}  // namespace graft
