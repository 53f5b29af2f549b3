// src/runtime/memory/caching_allocator.cpp: keeps freed device memory and hands it out again.
#include "runtime/memory/caching_allocator.h"

#include <algorithm>

#include "runtime/driver/fork.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/command_capture.h"
#include "runtime/stream/device.h"

namespace graft {
namespace {

constexpr uint64_t kGranularity = 512;
constexpr uint64_t kSmallBlock = 1ull << 20;  // the largest block of the small pool
constexpr uint64_t kSmallSegment = 2ull << 20;
constexpr uint64_t kLargeSegment = 20ull << 20;  // for blocks under half of it
constexpr uint64_t kLargeRounding = 2ull << 20;  // of the segments of larger blocks

uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

uint64_t segment_bytes(uint64_t capacity) {
  if (capacity <= kSmallBlock) return std::max(kSmallSegment, capacity);
  return capacity < kLargeSegment / 2 ? kLargeSegment : round_up(capacity, kLargeRounding);
}

StatisticPool pool_of(const Segment& segment) { return segment.large ? kLargePool : kSmallPool; }

int64_t signed_bytes(uint64_t bytes) { return static_cast<int64_t>(bytes); }

}  // namespace

CachingAllocator::CachingAllocator(Device& device, std::unique_ptr<Allocator> source)
    : device_(device),
      granularity_(std::max(kGranularity, device.properties().allocation_alignment)),
      source_(std::move(source)) {}

CachingAllocator::~CachingAllocator() {
  for (const auto& [address, segment] : segments_) source_->free(segment->source);
}

Block* CachingAllocator::allocate(uint64_t bytes, Stream& stream) {
  if (!device_.usable() || forked_child()) device_.refuse_unusable();
  MemoryContext context = this->context();
  const uint64_t capacity = round_up(bytes, granularity_);
  const bool large = capacity > kSmallBlock;
  std::unique_lock<std::mutex> lock(mutex_);
  if (!marks_.empty()) reclaim();
  CachedBlock* block = capacity < bytes ? nullptr : pool(stream, large).find(capacity);
  if (block == nullptr) {
    try {
      block = add_segment_or_retry(bytes, capacity, stream, lock);
    } catch (const OutOfMemory& error) {
      ++statistics_.num_ooms;
      const MemoryStatistics now = statistics_;
      const uint64_t limit = source_->limit();
      lock.unlock();
      history_.add(MemoryAction::kOutOfMemory, memory_left(device_, now).free, bytes, stream.id(),
                   std::move(context));
      const std::string says = error.driver_says;
      throw OutOfMemory(out_of_memory_text(device_, bytes, now, limit, says), says);
    }
  }
  carve(block, capacity);
  hold(block, bytes);
  if (recording_.load(std::memory_order_relaxed)) {
    block->context = context;
    note(MemoryAction::kAllocate, *block, std::move(context));
  }
  if (CommandCapture* const capture = CommandCapture::current()) {
    capture->allocated(block->address, bytes, stream);
  }
  return block;
}

void CachingAllocator::hold(CachedBlock* block, uint64_t bytes) {
  block->state = CachedBlock::State::kHeld;
  block->bytes = bytes;
  ++block->segment->in_use;
  const StatisticPool pool = pool_of(*block->segment);
  statistics_.allocation.increase(pool, 1);
  statistics_.active.increase(pool, 1);
  statistics_.allocated_bytes.increase(pool, signed_bytes(block->capacity));
  statistics_.active_bytes.increase(pool, signed_bytes(block->capacity));
  statistics_.requested_bytes.increase(pool, signed_bytes(bytes));
}

void CachingAllocator::free(Block* held) noexcept {
  if (forked_child()) return;
  auto* block = static_cast<CachedBlock*>(held);
  if (CommandCapture* const capture = CommandCapture::current()) capture->freed(block->address);
  std::vector<Mark> marks;
  bool lasting = false;
  if (block->shared) marks = mark_users(block, &lasting);
  MemoryContext context = this->context();
  std::lock_guard<std::mutex> lock(mutex_);
  const StatisticPool pool = pool_of(*block->segment);
  statistics_.allocation.decrease(pool, 1);
  statistics_.allocated_bytes.decrease(pool, signed_bytes(block->capacity));
  statistics_.requested_bytes.decrease(pool, signed_bytes(block->bytes));
  if (recording_.load(std::memory_order_relaxed)) {
    note(MemoryAction::kFreeRequested, *block, std::move(context));
  }
  if (marks.empty() && !lasting) return release(block);
  block->state = CachedBlock::State::kPending;
  block->pending = static_cast<uint32_t>(marks.size()) + (lasting ? 1 : 0);
  for (Mark& mark : marks) marks_[mark.event->stream()].push_back(std::move(mark));
}

void CachingAllocator::record_stream(Block* held, Stream& stream) {
  if (forked_child() || &stream == held->stream) return;
  auto* block = static_cast<CachedBlock*>(held);
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Stream*>& users = users_[block];
  if (std::find(users.begin(), users.end(), &stream) == users.end()) users.push_back(&stream);
  block->shared = true;
}

std::vector<CachingAllocator::Mark> CachingAllocator::mark_users(CachedBlock* block,
                                                                 bool* out_lasting) noexcept {
  std::vector<Stream*> users;
  std::vector<std::unique_ptr<Event>> spare;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    users = std::move(users_.extract(block).mapped());
    block->shared = false;
    for (size_t i = 0; i < users.size() && !spare_events_.empty(); ++i) {
      spare.push_back(std::move(spare_events_.back()));
      spare_events_.pop_back();
    }
  }
  std::vector<Mark> marks;
  for (Stream* user : users) {
    try {
      if (user->recording() != nullptr) {  // a mark there counts as passed at once
        *out_lasting |= !user->settle();
      }
      std::unique_ptr<Event> event;
      if (&user->device() == &device_ && !spare.empty()) {
        event = std::move(spare.back());
        spare.pop_back();
      } else {
        event = std::make_unique<Event>(user->device(), false);
      }
      event->record(*user);
      marks.push_back({std::move(event), block});
    } catch (const std::exception&) {
      *out_lasting |= !user->settle();  // no event to wait for: wait now (at once on a lost device)
    }
  }
  return marks;
}

void CachingAllocator::pass(Mark& mark) noexcept {
  if (&mark.event->device() == &device_) spare_events_.push_back(std::move(mark.event));
  if (--mark.block->pending == 0) release(mark.block);
}

void CachingAllocator::reclaim() noexcept {
  for (auto queue = marks_.begin(); queue != marks_.end();) {
    std::deque<Mark>& marks = queue->second;
    while (!marks.empty()) {
      try {
        if (!marks.front().event->query()) break;
      } catch (const Error&) {  // what failed is done
      }
      pass(marks.front());
      marks.pop_front();
    }
    queue = marks.empty() ? marks_.erase(queue) : std::next(queue);
  }
}

void CachingAllocator::wait_for_pending(Lock& lock) noexcept {
  if (marks_.empty()) return;
  ++statistics_.num_sync_all_streams;
  std::vector<Stream*> streams;
  for (const auto& [stream, marks] : marks_) streams.push_back(stream);
  lock.unlock();
  for (Stream* stream : streams) stream->settle();
  lock.lock();
  reclaim();
}

void CachingAllocator::release(CachedBlock* block) noexcept {
  const StatisticPool pool = pool_of(*block->segment);
  statistics_.active.decrease(pool, 1);
  statistics_.active_bytes.decrease(pool, signed_bytes(block->capacity));
  --block->segment->in_use;
  if (recording_.load(std::memory_order_relaxed)) {
    note(MemoryAction::kFreeCompleted, *block, nullptr);
  }
  if (block->context != nullptr) block->context.reset();
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
}

CachedBlock* CachingAllocator::join(CachedBlock* low, CachedBlock* high) noexcept {
  low->capacity += high->capacity;
  low->after = high->after;
  if (low->after != nullptr) low->after->before = low;
  drop_block(high);
  return low;
}

void CachingAllocator::count_split(const CachedBlock* block, bool appears) noexcept {
  if (block->before == nullptr && block->after == nullptr) return;
  const StatisticPool pool = pool_of(*block->segment);
  if (appears) {
    statistics_.inactive_split.increase(pool, 1);
    statistics_.inactive_split_bytes.increase(pool, signed_bytes(block->capacity));
  } else {
    statistics_.inactive_split.decrease(pool, 1);
    statistics_.inactive_split_bytes.decrease(pool, signed_bytes(block->capacity));
  }
}

void CachingAllocator::insert_free(CachedBlock* block) noexcept {
  block->segment->pool->insert(block);
  count_split(block, true);
}

void CachingAllocator::remove_free(CachedBlock* block) noexcept {
  block->segment->pool->remove(block);
  count_split(block, false);
}

void CachingAllocator::carve(CachedBlock* block, uint64_t capacity) {
  const uint64_t rest = block->capacity - capacity;
  // A rest under 1 MiB in the large pool fits no request of its own.
  const bool split = block->segment->large ? rest > kSmallBlock : rest >= granularity_;
  CachedBlock* tail = split ? new_block() : nullptr;
  remove_free(block);
  if (tail == nullptr) return;
  tail->address = block->address + capacity;
  tail->capacity = rest;
  tail->device = &device_;
  tail->stream = block->stream;
  tail->segment = block->segment;
  tail->state = CachedBlock::State::kFree;
  tail->before = block;
  tail->after = block->after;
  if (tail->after != nullptr) tail->after->before = tail;
  block->after = tail;
  block->capacity = capacity;
  insert_free(tail);
}

CachedBlock* CachingAllocator::new_block() {
  if (spare_ == nullptr) return &blocks_.emplace_back();
  CachedBlock* block = spare_;
  spare_ = block->next;
  return block;
}

void CachingAllocator::drop_block(CachedBlock* block) noexcept {
  block->before = block->after = block->previous = nullptr;
  block->segment = nullptr;
  block->next = spare_;
  spare_ = block;
}

CachedBlock* CachingAllocator::add_segment(uint64_t bytes, Stream& stream, bool large) {
  CachedBlock* block = new_block();
  auto segment = std::make_unique<Segment>();
  try {
    segment->source = source_->allocate(bytes, stream);
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
  block->device = &device_;
  block->stream = &stream;
  block->segment = segment.get();
  block->state = CachedBlock::State::kFree;
  insert_free(block);
  const StatisticPool pool = pool_of(*segment);
  statistics_.segment.increase(pool, 1);
  statistics_.reserved_bytes.increase(pool, signed_bytes(bytes));
  ++statistics_.num_device_alloc;
  note(MemoryAction::kSegmentAllocate, *segment->source, nullptr);
  segments_.emplace(block->address, std::move(segment));
  return block;
}

CachedBlock* CachingAllocator::add_segment_or_retry(uint64_t bytes, uint64_t capacity,
                                                    Stream& stream, Lock& lock) {
  const bool large = capacity > kSmallBlock;
  const auto add = [&]() -> CachedBlock* {
    const uint64_t whole = segment_bytes(capacity);
    try {
      return add_segment(whole, stream, large);
    } catch (const OutOfMemory&) {
      if (whole == capacity) throw;
    }
    return add_segment(capacity, stream, large);
  };
  if (capacity < bytes) throw OutOfMemory("", "nothing, no device has so much memory");
  if (capacity > kLargeSegment) make_room(capacity, stream, lock);
  try {
    return add();
  } catch (const OutOfMemory&) {
    ++statistics_.num_alloc_retries;
  }
  wait_for_pending(lock);
  if (CachedBlock* block = pool(stream, large).find(capacity)) return block;
  release_cached(lock);
  return add();
}

void CachingAllocator::make_room(uint64_t bytes, const Stream& stream, Lock& lock) noexcept {
  uint64_t released = 0;
  std::vector<Block*> sources;
  while (released < bytes) {
    auto largest = segments_.end();
    for (auto entry = segments_.begin(); entry != segments_.end(); ++entry) {
      const Segment& segment = *entry->second;
      if (segment.in_use != 0 || segment.private_pool != 0 || segment.stream != &stream) continue;
      if (segment.bytes <= kLargeSegment) continue;
      if (largest == segments_.end() || segment.bytes > largest->second->bytes) largest = entry;
    }
    if (largest == segments_.end()) break;
    released += largest->second->bytes;
    release_segment(largest, &sources);
  }
  give_back(sources, lock);
}

CachingAllocator::Segments::iterator CachingAllocator::release_segment(
    Segments::iterator entry, std::vector<Block*>* out) noexcept {
  Segment& segment = *entry->second;
  remove_free(segment.first);
  note(MemoryAction::kSegmentFree, *segment.source, nullptr);
  drop_block(segment.first);
  const StatisticPool pool = pool_of(segment);
  statistics_.segment.decrease(pool, 1);
  statistics_.reserved_bytes.decrease(pool, signed_bytes(segment.bytes));
  ++statistics_.num_device_free;
  out->push_back(segment.source);
  return segments_.erase(entry);
}

void CachingAllocator::give_back(const std::vector<Block*>& sources, Lock& lock) noexcept {
  if (sources.empty()) return;
  lock.unlock();
  for (Block* source : sources) source_->free(source);
  lock.lock();
}

void CachingAllocator::release_cached(Lock& lock) noexcept {
  std::vector<Block*> sources;
  for (auto entry = segments_.begin(); entry != segments_.end();) {
    const bool unused = entry->second->in_use == 0 && entry->second->private_pool == 0;
    entry = unused ? release_segment(entry, &sources) : std::next(entry);
  }
  give_back(sources, lock);
}

void CachingAllocator::empty_cache() {
  if (forked_child() || (!device_.usable() && !device_.lost())) return;
  Lock lock(mutex_);
  wait_for_pending(lock);
  release_cached(lock);
}

void CachingAllocator::close() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  source_->close();
}

}  // namespace graft
