// src/runtime/memory/direct_allocator.cpp: device memory straight from the driver, with nothing
// kept.
#include "runtime/memory/direct_allocator.h"

#include <algorithm>
#include <utility>

#include "runtime/driver/device_name.h"
#include "runtime/driver/fork.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

constexpr uint64_t kNoPool = ~uint64_t{0};  // never released

StatisticPool pool_of(uint64_t bytes) { return bytes > (1u << 20) ? kLargePool : kSmallPool; }

}  // namespace

MemoryInfo memory_left(OpenDevice& device, const MemoryStatistics& statistics) {
  const auto held = static_cast<uint64_t>(statistics.reserved_bytes.all().current);
  try {
    return device.memory_info(held);  // asks no allocator: one may hold its lock
  } catch (const Error&) {
    const uint64_t total = device.properties().memory_bytes;
    return {total - std::min(total, held), total};
  }
}

std::string out_of_memory_text(OpenDevice& device, uint64_t bytes,
                               const MemoryStatistics& statistics, uint64_t limit,
                               const std::string& driver_says) {
  const auto now = [](const PooledStatistic& figure) {
    return static_cast<uint64_t>(figure.all().current);
  };
  const uint64_t reserved = now(statistics.reserved_bytes);
  const uint64_t held = now(statistics.active_bytes);
  const MemoryInfo info = memory_left(device, statistics);
  std::string text =
      "Tried to allocate " + bytes_text(bytes) + ". " + device.label() + " has a total of " +
      bytes_text(info.total) + " of which " + bytes_text(info.free) + " is free; " +
      bytes_text(held) + " is allocated by tensors, " +
      bytes_text(reserved - std::min(reserved, held)) + " is reserved but unallocated.";
  if (limit != 0) {
    text += " This process may take " + bytes_text(limit) + " (set_per_process_memory_fraction).";
  }
  text += " The driver says: " + driver_says + ".";
  return text +
         " Use smaller batches, free tensors that are no longer needed, or call "
         "torch." +
         device_type_name() + ".empty_cache() when other processes share the device.";
}

DirectAllocator::~DirectAllocator() { close(); }

void DirectAllocator::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  for (const auto& [address, piece] : pieces_) {
    Driver::call(device_.driver().table().memory_free, device_.handle(), address);
  }
}

Block* DirectAllocator::allocate(uint64_t bytes, Stream& stream) {
  device_.refuse_unusable();
  MemoryContext context = history_.context();
  const StatisticPool pool = pool_of(bytes);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto held = static_cast<uint64_t>(statistics_.reserved_bytes.all().current);
  graft_status status = GRAFT_OUT_OF_MEMORY;
  const bool allowed = limit_ == 0 || (bytes <= limit_ && held <= limit_ - bytes);
  graft_address address = 0;
  if (allowed) {
    statistics_.reserved_bytes.increase(pool, static_cast<int64_t>(bytes));
    lock.unlock();
    status =
        Driver::call(device_.driver().table().memory_allocate, device_.handle(), bytes, &address);
    lock.lock();
  }
  const uint64_t alignment = device_.properties().allocation_alignment;
  if (status != GRAFT_OK || address == 0 || address % alignment != 0) {
    if (allowed) statistics_.reserved_bytes.decrease(pool, static_cast<int64_t>(bytes));
    lock.unlock();
    if (status == GRAFT_OUT_OF_MEMORY) out_of_memory(bytes, allowed);
    device_.check(status, "memory_allocate");
    throw Error(GRAFT_INTERNAL, device_.label() + ": memory_allocate gave the address " +
                                    std::to_string(address) + ", expected a multiple of " +
                                    std::to_string(alignment) + " other than 0.");
  }
  Piece& piece = pieces_[address];
  piece.address = address;
  piece.bytes = piece.capacity = bytes;
  piece.stream = &stream;
  piece.pool = stream.memory_pool();
  piece.context = context;
  count(pool, bytes, true);
  history_.add(MemoryAction::kAllocate, address, bytes, stream.id(), std::move(context));
  return &piece;
}

void DirectAllocator::count(StatisticPool pool, uint64_t bytes, bool taken) {
  const auto amount = static_cast<int64_t>(bytes);
  const auto change = [&](PooledStatistic& figure, int64_t by) {
    taken ? figure.increase(pool, by) : figure.decrease(pool, by);
  };
  change(statistics_.allocation, 1);
  change(statistics_.segment, 1);
  change(statistics_.active, 1);
  change(statistics_.allocated_bytes, amount);
  change(statistics_.active_bytes, amount);
  change(statistics_.requested_bytes, amount);
  ++(taken ? statistics_.num_device_alloc : statistics_.num_device_free);
}

void DirectAllocator::out_of_memory(uint64_t bytes, bool driver_refused) {
  const std::string says = driver_refused
                               ? device_.driver().message(GRAFT_OUT_OF_MEMORY)
                               : "nothing: the limit of this process stopped the allocation";
  MemoryStatistics now;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++statistics_.num_ooms;
    now = statistics_;
  }
  history_.add(MemoryAction::kOutOfMemory, memory_left(device_, now).free, bytes, 0,
               history_.context());
  throw OutOfMemory(out_of_memory_text(device_, bytes, now, limit(), says), says);
}

void DirectAllocator::free(Block* block) noexcept {
  if (forked_child()) return;
  auto* piece = static_cast<Piece*>(block);
  const graft_address address = piece->address;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    piece->parked = retained_.contains(piece->pool);
    if (piece->parked) return;
  }
  bool done = piece->stream->settle();
  for (Stream* user : piece->users) done &= user->settle();
  if (!done) {
    const std::lock_guard lock(mutex_);
    piece->parked = true, piece->pool = kNoPool;
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const StatisticPool pool = pool_of(piece->bytes);
    statistics_.reserved_bytes.decrease(pool, static_cast<int64_t>(piece->bytes));
    count(pool, piece->bytes, false);
    history_.add(MemoryAction::kFreeCompleted, address, piece->bytes, piece->stream->id(), nullptr);
    pieces_.erase(address);
  }
  Driver::call(device_.driver().table().memory_free, device_.handle(), address);
}

void DirectAllocator::retain_pool(uint64_t pool) {
  const std::lock_guard lock(mutex_);
  ++retained_[pool];
}

void DirectAllocator::release_pool(uint64_t pool) noexcept {
  if (forked_child()) return;
  std::vector<Piece*> parked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = retained_.find(pool);
    if (found == retained_.end() || --found->second != 0) return;
    retained_.erase(found);
    for (auto& [address, piece] : pieces_) {
      if (piece.parked && piece.pool == pool) parked.push_back(&piece);
    }
  }
  for (Piece* piece : parked) free(piece);
}

void DirectAllocator::record_stream(Block* block, Stream& stream) {
  auto* piece = static_cast<Piece*>(block);
  if (&stream == piece->stream) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(piece->users.begin(), piece->users.end(), &stream) == piece->users.end()) {
    piece->users.push_back(&stream);
  }
}

MemoryStatistics DirectAllocator::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

void DirectAllocator::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  statistics_.reset_peak();
}

void DirectAllocator::reset_accumulated() {
  std::lock_guard<std::mutex> lock(mutex_);
  statistics_.reset_accumulated();
}

void DirectAllocator::set_limit(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
}

uint64_t DirectAllocator::limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

MemorySnapshot DirectAllocator::snapshot() const {
  MemorySnapshot snapshot;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [address, piece] : pieces_) {
    BlockSnapshot block{address, piece.capacity, piece.bytes, BlockState::kActive, piece.context};
    snapshot.segments.push_back({address,
                                 piece.capacity,
                                 piece.capacity,
                                 piece.capacity,
                                 piece.bytes,
                                 piece.stream->id(),
                                 pool_of(piece.bytes) == kLargePool,
                                 false,
                                 piece.pool,
                                 {std::move(block)}});
  }
  snapshot.history = history_.records();
  return snapshot;
}

Block* DirectAllocator::find(graft_address address) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return nullptr;
  Piece& piece = std::prev(after)->second;
  return address - piece.address < piece.capacity ? &piece : nullptr;
}

}  // namespace graft
