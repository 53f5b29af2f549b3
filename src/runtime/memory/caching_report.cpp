// src/runtime/memory/caching_report.cpp: what a caching allocator tells about itself.
#include <algorithm>

#include "runtime/memory/caching_allocator.h"
#include "runtime/stream/stream.h"

namespace graft {

MemoryContext CachingAllocator::context() const {
  if (!recording_.load(std::memory_order_relaxed)) return nullptr;
  const MemoryContextSource source = context_source_.load(std::memory_order_acquire);
  return source != nullptr ? source() : nullptr;
}

void CachingAllocator::note(MemoryAction action, const Block& block, MemoryContext context) {
  if (!recording_.load(std::memory_order_relaxed)) return;
  history_.add(action, block.address, block.capacity, block.stream->id(), std::move(context));
}

MemoryStatistics CachingAllocator::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

void CachingAllocator::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  statistics_.reset_peak();
}

void CachingAllocator::reset_accumulated() {
  std::lock_guard<std::mutex> lock(mutex_);
  statistics_.reset_accumulated();
}

void CachingAllocator::set_limit(uint64_t bytes) { source_->set_limit(bytes); }

uint64_t CachingAllocator::limit() const { return source_->limit(); }

uint64_t CachingAllocator::largest_cached() const {
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t most = 0;
  for (const auto& pools : pools_) {
    if (pools == nullptr) continue;
    most = std::max({most, pools->small.largest(), pools->large.largest()});
  }
  return most;
}

void CachingAllocator::record_history(size_t entries, MemoryContextSource source) {
  history_.keep(entries);
  context_source_.store(source, std::memory_order_release);
  recording_.store(entries != 0 || source != nullptr, std::memory_order_relaxed);
}

MemorySnapshot CachingAllocator::snapshot() const {
  MemorySnapshot snapshot;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [address, segment] : segments_) {
    SegmentSnapshot whole{address,        segment->bytes,        0, 0, 0, segment->stream->id(),
                          segment->large, segment->private_pool, {}};
    for (const CachedBlock* block = segment->first; block != nullptr; block = block->after) {
      const bool held = block->state == CachedBlock::State::kHeld;
      const bool free = block->state == CachedBlock::State::kFree;
      if (held) whole.allocated += block->capacity;
      if (!free) whole.active += block->capacity;
      if (held) whole.requested += block->bytes;
      const BlockState state = held   ? BlockState::kActive
                               : free ? BlockState::kInactive
                                      : BlockState::kPendingFree;
      whole.blocks.push_back(
          {block->address, block->capacity, free ? 0 : block->bytes, state, block->context});
    }
    snapshot.segments.push_back(std::move(whole));
  }
  snapshot.history = history_.records();
  return snapshot;
}

Block* CachingAllocator::find(graft_address address) {
  std::lock_guard<std::mutex> lock(mutex_);
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

}  // namespace graft
