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

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

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
  if (capacity < kLargeSegment / 2) {
    const uint64_t rest = kLargeSegment % capacity;
    return rest <= kSmallBlock ? kLargeSegment - rest : kLargeSegment;
  }
  return round_up(capacity, kLargeRounding);
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
  CachedBlock* block = blocks_.make();
  auto segment = std::make_unique<Segment>();
  try {
    segment->source = source_.allocate(bytes, stream);
  } catch (...) {
    blocks_.drop(block);
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
  // What is too little for a request still joins the neighbour behind it when that becomes free.
  CachedBlock* tail = block->capacity == capacity ? nullptr : blocks_.make();
  remove_free(block);
  if (tail == nullptr) return;
  BlockList::cut(block, capacity, tail);
  insert_free(tail);
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
    block = blocks_.join(block, block->after);
  }
  if (block->before != nullptr && block->before->state == CachedBlock::State::kFree) {
    remove_free(block->before);
    block = blocks_.join(block->before, block);
  }
  insert_free(block);
  return block;
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
  blocks_.drop(segment.first);
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
  for (const auto& [address, segment] : segments_) append_snapshot(*segment, all);
  return all;
}

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
  CachedBlock* const block = segment->first = blocks_.make();
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
  CachedBlock* const rest = block->capacity == wanted ? nullptr : blocks_.make();
  try {
    segment.range->map(block->address, wanted);
  } catch (...) {
    if (rest != nullptr) blocks_.drop(rest);
    throw;
  }
  if (rest != nullptr) BlockList::cut(block, wanted, rest);
  taken->address = block->address;
  taken->bytes = taken->capacity = wanted;
  taken->stream = segment.stream;
  const StatisticPool pool = segment.counted_in();
  if (segment.bytes == 0) statistics_.segment.increase(pool, 1);
  segment.bytes += wanted;
  statistics_.reserved_bytes.increase(pool, signed_bytes(wanted));
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
        CachedBlock* const middle = blocks_.make();
        BlockList::cut(block, begin - block->address, middle);
        insert_free(block);
        block = middle;
      }
      if (end < block->address + block->capacity) {
        CachedBlock* const tail = blocks_.make();
        BlockList::cut(block, end - block->address, tail);
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
  statistics_.reserved_bytes.decrease(pool, signed_bytes(block->capacity));
  if (segment.bytes == 0) statistics_.segment.decrease(pool, 1);
  ++statistics_.num_device_free;
  block->state = State::kUnmapped;
  if (block->after != nullptr && block->after->state == State::kUnmapped) {
    blocks_.join(block, block->after);
  }
  if (block->before != nullptr && block->before->state == State::kUnmapped) {
    blocks_.join(block->before, block);
  }
}

}  // namespace graft
