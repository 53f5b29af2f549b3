// src/runtime/memory/caching_allocator.cpp: keeps freed device memory and hands it out again.
#include "runtime/memory/caching_allocator.h"

#include <map>
#include <utility>

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/command_capture.h"
#include "runtime/stream/stream.h"

namespace graft {

CachingAllocator::CachingAllocator(OpenDevice& device, std::unique_ptr<Allocator> source)
    : device_(device),
      source_(std::move(source)),
      users_(device, mutex_),
      segments_(device, *source_) {}

Block* CachingAllocator::allocate(uint64_t bytes, Stream& stream) {
  if (!device_.usable() || forked_child()) device_.refuse_unusable();
  MemoryContext context = history_.context();
  const uint64_t capacity = segments_.capacity_for(bytes);
  Lock lock(mutex_);
  if (users_.has_marks()) reclaim();
  CachedBlock* block = capacity < bytes ? nullptr : segments_.free_block(capacity, stream);
  if (block == nullptr) {
    try {
      block = add_segment_or_retry(bytes, capacity, stream, lock);
    } catch (const OutOfMemory& error) {
      ++segments_.statistics().num_ooms;
      const MemoryStatistics now = segments_.statistics();
      const uint64_t limit = source_->limit();
      lock.unlock();
      history_.add(MemoryAction::kOutOfMemory, memory_left(device_, now).free, bytes, stream.id(),
                   std::move(context));
      const std::string says = error.driver_says;
      throw OutOfMemory(out_of_memory_text(device_, bytes, now, limit, says), says);
    }
  }
  segments_.hold(block, bytes, capacity);
  if (history_.recording()) {
    block->context = context;
    note(MemoryAction::kAllocate, *block, std::move(context));
  }
  if (CommandCapture* const capture = CommandCapture::current()) {
    capture->allocated(block->address, bytes, stream);
  }
  return block;
}

void CachingAllocator::free(Block* held) noexcept {
  if (forked_child()) return;
  auto* block = static_cast<CachedBlock*>(held);
  if (CommandCapture* const capture = CommandCapture::current()) capture->freed(block->address);
  BlockUsers::Marks marks;
  if (block->shared) marks = users_.mark_users(block);
  MemoryContext context = history_.context();
  std::lock_guard<std::mutex> lock(mutex_);
  segments_.set_pending(block);
  if (history_.recording()) note(MemoryAction::kFreeRequested, *block, std::move(context));
  if (marks.none()) return release(block);
  users_.wait_for(block, std::move(marks));
}

void CachingAllocator::record_stream(Block* held, Stream& stream) {
  if (forked_child() || &stream == held->stream) return;
  std::lock_guard<std::mutex> lock(mutex_);
  users_.add(static_cast<CachedBlock*>(held), stream);
}

void CachingAllocator::release(CachedBlock* block) noexcept {
  if (history_.recording()) note(MemoryAction::kFreeCompleted, *block, nullptr);
  segments_.release(block);
}

void CachingAllocator::reclaim() noexcept {
  for (CachedBlock* block : users_.take_passed()) release(block);
}

void CachingAllocator::wait_for_pending(Lock& lock) noexcept {
  if (!users_.has_marks()) return;
  ++segments_.statistics().num_sync_all_streams;
  const std::vector<Stream*> streams = users_.marked_streams();
  lock.unlock();
  for (Stream* stream : streams) stream->settle();
  lock.lock();
  reclaim();
}

CachedBlock* CachingAllocator::add_segment(uint64_t capacity, Stream& stream) {
  Block taken;
  CachedBlock* block = segments_.add(capacity, stream, &taken);
  const bool mapped = block->segment->range != nullptr;
  note(mapped ? MemoryAction::kSegmentMap : MemoryAction::kSegmentAllocate, taken, nullptr);
  return block;
}

CachedBlock* CachingAllocator::add_segment_or_retry(uint64_t bytes, uint64_t capacity,
                                                    Stream& stream, Lock& lock) {
  if (capacity < bytes) throw OutOfMemory("", "nothing, no device has so much memory");
  give_back(segments_.release_for(capacity, stream), lock);
  try {
    return add_segment(capacity, stream);
  } catch (const OutOfMemory&) {
    ++segments_.statistics().num_alloc_retries;
  }
  wait_for_pending(lock);
  if (CachedBlock* block = segments_.free_block(capacity, stream)) return block;
  give_back(segments_.release_unused(), lock);
  unmap_free(lock);
  if (CachedBlock* block = segments_.free_block(capacity, stream)) return block;
  return add_segment(capacity, stream);
}

void CachingAllocator::give_back(const std::vector<Block*>& sources, Lock& lock) noexcept {
  if (sources.empty()) return;
  for (Block* source : sources) note(MemoryAction::kSegmentFree, *source, nullptr);
  lock.unlock();
  for (Block* source : sources) source_->free(source);
  lock.lock();
}

void CachingAllocator::unmap_free(Lock& lock) noexcept {
  const std::vector<CachedBlock*> leaving = segments_.leave_ranges();
  if (leaving.empty()) return;
  std::map<Stream*, bool> done;
  for (const CachedBlock* block : leaving) done.try_emplace(block->stream, false);
  lock.unlock();
  for (auto& [stream, is_done] : done) is_done = stream->settle();
  lock.lock();
  for (CachedBlock* block : leaving) {
    if (!done[block->stream]) {
      segments_.keep(block);
      continue;
    }
    note(MemoryAction::kSegmentUnmap, *block, nullptr);
    segments_.unmap(block);
  }
}

void CachingAllocator::empty_cache() {
  if (forked_child() || (!device_.usable() && !device_.lost())) return;
  Lock lock(mutex_);
  wait_for_pending(lock);
  give_back(segments_.release_unused(), lock);
  unmap_free(lock);
}

void CachingAllocator::retain_pool(uint64_t pool) {
  const std::lock_guard lock(mutex_);
  segments_.retain_pool(pool);
}

void CachingAllocator::release_pool(uint64_t pool) noexcept {
  if (forked_child()) return;
  const std::lock_guard lock(mutex_);
  segments_.release_pool(pool);
}

MemoryStatistics CachingAllocator::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return segments_.statistics();
}

void CachingAllocator::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  segments_.statistics().reset_peak();
}

void CachingAllocator::reset_accumulated() {
  std::lock_guard<std::mutex> lock(mutex_);
  segments_.statistics().reset_accumulated();
}

void CachingAllocator::set_limit(uint64_t bytes) { source_->set_limit(bytes); }

uint64_t CachingAllocator::limit() const { return source_->limit(); }

uint64_t CachingAllocator::largest_cached() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return segments_.largest_free();
}

void CachingAllocator::note(MemoryAction action, const Block& block, MemoryContext context) {
  if (!history_.recording()) return;
  history_.add(action, block.address, block.capacity, block.stream->id(), std::move(context));
}

MemorySnapshot CachingAllocator::snapshot() const {
  MemorySnapshot snapshot;
  std::lock_guard<std::mutex> lock(mutex_);
  snapshot.segments = segments_.snapshot();
  snapshot.history = history_.records();
  return snapshot;
}

Block* CachingAllocator::find(graft_address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  return segments_.held_block(address);
}

void CachingAllocator::close() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_.close();
  source_->close();
}

}  // namespace graft
