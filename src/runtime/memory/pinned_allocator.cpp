// src/runtime/memory/pinned_allocator.cpp: host memory that a device copies without staging.
#include "runtime/memory/pinned_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMost = 1ull << 62;  // a power of two of which the next one still fits

int64_t signed_bytes(uint64_t bytes) { return static_cast<int64_t>(bytes); }

std::array<Statistic*, 4> figures(PinnedAllocator::Statistics& of) {
  return {&of.allocated_bytes, &of.reserved_bytes, &of.allocation, &of.segment};
}

}  // namespace

PinnedAllocator::PinnedAllocator(OpenDevice& device) : device_(device) {}

PinnedAllocator::~PinnedAllocator() {
  if (closed_) return;
  for (auto& [address, piece] : pieces_) give_back(piece.pointer);
}

void PinnedAllocator::close() noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  for (auto& [address, piece] : pieces_) {
    if (!piece.held && piece.retained == 0) give_back(piece.pointer);
  }
}

void* PinnedAllocator::take(uint64_t bytes) {
  const auto& table = device_.driver().table();
  if (table.host_allocate == nullptr) return std::aligned_alloc(kPage, std::max(bytes, kPage));
  void* pointer = nullptr;
  const graft_status status = Driver::call(table.host_allocate, device_.handle(), bytes, &pointer);
  if (status == GRAFT_OUT_OF_MEMORY) return nullptr;
  device_.check(status, "host_allocate");
  return pointer;
}

void PinnedAllocator::give_back(void* pointer) noexcept {
  const auto& table = device_.driver().table();
  if (table.host_allocate == nullptr) {
    std::free(pointer);
  } else {
    Driver::call(table.host_free, device_.handle(), pointer);
  }
}

PinnedBlock* PinnedAllocator::allocate(uint64_t bytes) {
  device_.refuse_unusable();
  const uint64_t capacity = std::bit_ceil(std::clamp<uint64_t>(bytes, 512, kMost));
  std::unique_lock<std::mutex> lock(mutex_);
  reclaim();
  std::vector<Piece*>& free = free_[capacity];
  Piece* piece = nullptr;
  if (!free.empty()) {
    piece = free.back();
    free.pop_back();
  } else {
    void* pointer = bytes > kMost ? nullptr : take(capacity);
    if (pointer == nullptr && bytes <= kMost) {
      lock.unlock();
      wait_for_pending();
      lock.lock();
      reclaim();
      release_cached();
      pointer = take(capacity);
    }
    if (pointer == nullptr) {
      throw Error(GRAFT_OUT_OF_MEMORY,
                  "Tried to pin " + bytes_text(bytes) + " of host memory for " + device_.label() +
                      ", which has pinned " +
                      bytes_text(static_cast<uint64_t>(statistics_.reserved_bytes.current)) +
                      " already. Pin less, or raise the limit of locked memory (ulimit -l).");
    }
    piece = &pieces_[reinterpret_cast<uintptr_t>(pointer)];
    piece->pointer = pointer;
    piece->capacity = capacity;
    piece->allocator = this;
    statistics_.segment.increase(1);
    statistics_.reserved_bytes.increase(signed_bytes(capacity));
  }
  piece->bytes = bytes;
  piece->held = true;
  statistics_.allocation.increase(1);
  statistics_.allocated_bytes.increase(signed_bytes(capacity));
  return piece;
}

void PinnedAllocator::free(PinnedBlock* block) noexcept {
  if (forked_child()) return;
  auto* piece = static_cast<Piece*>(block);
  std::vector<Stream*> users;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    users.swap(piece->users);
  }
  std::vector<std::unique_ptr<Event>> marks;
  bool in_use = false;
  for (Stream* user : users) {
    try {
      if (user->recording() != nullptr) {  // a mark would become part of the recording
        in_use |= !user->settle();
        continue;
      }
      auto event = std::make_unique<Event>(user->device(), false);
      event->record(*user);
      marks.push_back(std::move(event));
    } catch (const std::exception&) {
      in_use |= !user->settle();  // no event to wait for: wait now (at once on a lost device)
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  piece->held = false;
  statistics_.allocation.decrease(1);
  statistics_.allocated_bytes.decrease(signed_bytes(piece->capacity));
  piece->marks = std::move(marks);
  piece->in_use = in_use;
  if (piece->retained == 0) shelve(piece);
}

void PinnedAllocator::shelve(Piece* piece) {
  if (piece->in_use) return;  // goes to nobody else
  if (closed_) {              // the driver's own memory stays mapped: it takes no call any more
    if (device_.driver().table().host_allocate == nullptr) std::free(piece->pointer);
    return;
  }
  (piece->marks.empty() ? free_[piece->capacity] : pending_).push_back(piece);
}

std::shared_ptr<const void> PinnedAllocator::retain(PinnedBlock* block) {
  auto* piece = static_cast<Piece*>(block);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++piece->retained;
  }
  return {piece->pointer, [this, piece](const void*) { release(piece); }};
}

void PinnedAllocator::release(Piece* piece) noexcept {
  if (forked_child()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (--piece->retained == 0 && !piece->held) shelve(piece);
}

void PinnedAllocator::record_stream(PinnedBlock* block, Stream& stream) {
  if (forked_child()) return;
  auto* piece = static_cast<Piece*>(block);
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(piece->users.begin(), piece->users.end(), &stream) == piece->users.end()) {
    piece->users.push_back(&stream);
  }
}

// For the streams that use freed blocks. Without the lock: whoever wants it may hold Python's.
void PinnedAllocator::wait_for_pending() noexcept {
  std::vector<Stream*> streams;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Piece* piece : pending_) {
      for (const auto& mark : piece->marks) streams.push_back(mark->stream());
    }
  }
  std::sort(streams.begin(), streams.end());
  streams.erase(std::unique(streams.begin(), streams.end()), streams.end());
  for (Stream* stream : streams) stream->settle();
}

void PinnedAllocator::reclaim() noexcept {
  const auto passed = [](const std::unique_ptr<Event>& mark) {
    try {
      return mark->query();
    } catch (const Error&) {  // what failed is done
      return true;
    }
  };
  std::erase_if(pending_, [&](Piece* piece) {
    std::erase_if(piece->marks, passed);
    if (!piece->marks.empty()) return false;
    free_[piece->capacity].push_back(piece);
    return true;
  });
}

void PinnedAllocator::release_cached() noexcept {
  for (auto& [capacity, pieces] : free_) {
    for (Piece* piece : pieces) {
      statistics_.segment.decrease(1);
      statistics_.reserved_bytes.decrease(signed_bytes(capacity));
      void* const pointer = piece->pointer;
      pieces_.erase(reinterpret_cast<uintptr_t>(pointer));
      give_back(pointer);
    }
    pieces.clear();
  }
}

void PinnedAllocator::empty_cache() {
  if (forked_child() || (!device_.usable() && !device_.lost())) return;
  wait_for_pending();
  std::lock_guard<std::mutex> lock(mutex_);
  reclaim();
  release_cached();
}

PinnedBlock* PinnedAllocator::find(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return nullptr;
  const auto& [start, piece] = *std::prev(after);
  if (!piece.held || address - start >= piece.capacity) return nullptr;
  return const_cast<Piece*>(&piece);
}

PinnedAllocator::Statistics PinnedAllocator::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

void PinnedAllocator::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Statistic* one : figures(statistics_)) one->peak = one->current;
}

void PinnedAllocator::reset_accumulated() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Statistic* one : figures(statistics_)) one->allocated = one->freed = 0;
}

}  // namespace graft
