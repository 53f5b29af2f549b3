// src/runtime/memory/caching_pools.cpp: which free blocks the memory of a stream comes from.
#include "runtime/driver/fork.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/memory/chosen_pool.h"
#include "runtime/stream/stream.h"

namespace graft {

FreeBlocks& CachingAllocator::pool(const Stream& stream, bool large) {
  const auto found = private_pools_.find(pool_for(stream));
  if (found == private_pools_.end()) return shared_pool(stream, large);
  StreamPools& free = found->second.free[stream.memory_pool() == 0 ? stream.id() : kRecorded];
  return large ? free.large : free.small;
}

FreeBlocks& CachingAllocator::shared_pool(const Stream& stream, bool large) {
  const auto id = static_cast<size_t>(stream.id());
  if (id >= pools_.size()) pools_.resize(id + 1);
  if (pools_[id] == nullptr) pools_[id] = std::make_unique<StreamPools>();
  return large ? pools_[id]->large : pools_[id]->small;
}

void CachingAllocator::retain_pool(uint64_t pool) {
  const std::lock_guard lock(mutex_);
  ++private_pools_[pool].retained;
}

void CachingAllocator::release_pool(uint64_t pool) noexcept {
  if (forked_child()) return;
  const std::lock_guard lock(mutex_);
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

}  // namespace graft
