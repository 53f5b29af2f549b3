// drivers/host/memory/arena.cpp: the address space of all simulated devices.
#include "arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "graft/driver_slot.h"
#include "settings.h"
#include "trap.h"

namespace graft::host {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2 << 20;

}  // namespace

Arena* Arena::get() {
  static std::mutex mutex;
  static Arena* instance = nullptr;
  std::lock_guard lock(mutex);
  if (instance == nullptr) {
    std::unique_ptr<Arena> arena(new Arena);
    if (arena->reserve() != GRAFT_OK) return nullptr;
    instance = arena.release();
  }
  return instance;
}

graft_status Arena::reserve() {
  const Settings& s = settings();
  uint64_t wanted = std::bit_ceil(s.memory_bytes * s.devices) * 2;
  file_ = memfd_create("graft-device-memory", MFD_CLOEXEC);
  if (file_ < 0) return fail(GRAFT_IO, "memfd_create: " + std::string(strerror(errno)));
  // Thread sanitizer and address limits leave less room than a plain process has.
  for (bytes_ = std::clamp<uint64_t>(wanted, uint64_t{1} << 30, uint64_t{1} << 38);
       bytes_ >= uint64_t{64} << 20; bytes_ /= 2) {
    void* both = mmap(nullptr, 2 * bytes_ + kHugePage, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (both == MAP_FAILED) continue;
    uint64_t begin = (reinterpret_cast<uint64_t>(both) + kHugePage - 1) / kHugePage * kHugePage;
    void* device = reinterpret_cast<void*>(begin);
    void* kernel = reinterpret_cast<void*>(begin + bytes_);
    int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (ftruncate(file_, off_t(bytes_)) != 0 ||
        mmap(device, bytes_, PROT_NONE, flags, file_, 0) == MAP_FAILED ||
        mmap(kernel, bytes_, PROT_NONE, flags, file_, 0) == MAP_FAILED) {
      munmap(both, 2 * bytes_ + kHugePage);
      continue;
    }
    madvise(device, 2 * bytes_, MADV_DONTFORK);
    // Only where whole hugepages are handed out.
    madvise(static_cast<char*>(kernel) + bytes_ / 8, bytes_ / 8 * 7, MADV_HUGEPAGE);
    base_ = s.protect ? begin : begin + bytes_;
    delta_ = s.protect ? bytes_ : 0;
    if (s.protect) install_trap(base_, bytes_);
    small_ = std::make_unique<Range>(base_, base_ + bytes_ / 8, kPage);
    large_ = std::make_unique<Range>(base_ + bytes_ / 8, base_ + bytes_, kHugePage);
    return GRAFT_OK;
  }
  ::close(file_);
  return fail(GRAFT_OUT_OF_MEMORY,
              "cannot reserve address space for device memory: raise the limit of `ulimit -v`");
}

graft_status Arena::allocate(uint32_t owner, uint64_t bytes, graft_address* out_address) {
  std::lock_guard lock(mutex_);
  uint64_t rounded = (bytes + kPage - 1) / kPage * kPage, limit = settings().memory_bytes;
  Range& range = range_of(rounded);
  uint64_t& held = held_[owner];
  if (rounded < bytes || rounded > limit || held > limit - rounded) {
    return fail(GRAFT_OUT_OF_MEMORY,
                "device " + std::to_string(owner) + " has " + std::to_string(limit - held) +
                    " of " + std::to_string(limit) + " bytes free, but got a request for " +
                    std::to_string(bytes));
  }
  graft_address address = 0;
  if (!range.take(rounded, &address)) {
    return fail(GRAFT_OUT_OF_MEMORY, "no contiguous " + std::to_string(bytes) + " bytes left");
  }
  if (graft_status status = open(address, rounded); status != GRAFT_OK) {
    range.give(address, rounded);
    return status;
  }
  held += rounded;
  allocations_[address] = {rounded, owner};
  *out_address = address;
  return GRAFT_OK;
}

graft_status Arena::free(uint32_t owner, graft_address address) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.owner != owner || found->second.borrowed) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_free: the address is not from memory_allocate");
  }
  uint64_t rounded = found->second.bytes;
  frees_.fetch_add(1, std::memory_order_release);
  allocations_.erase(found);
  held_[owner] -= rounded;
  close(address, rounded);
  range_of(rounded).give(address, rounded);
  return GRAFT_OK;
}

graft_status Arena::piece(uint32_t owner, graft_address address, Piece* out_piece,
                          graft_address* out_begin) {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    const auto& [begin, allocation] = *std::prev(after);
    if (address - begin < allocation.bytes && allocation.owner == owner && !allocation.borrowed) {
      *out_piece = {file_, begin - base_, allocation.bytes};
      *out_begin = begin;
      return GRAFT_OK;
    }
  }
  return fail(GRAFT_INVALID_ARGUMENT,
              "memory_export: the address is not inside an allocation of the device");
}

graft_status Arena::borrow(uint32_t owner, const Piece& piece, graft_address* out_address) {
  std::lock_guard lock(mutex_);
  Range& range = range_of(piece.bytes);
  graft_address address = 0;
  if (!range.take(piece.bytes, &address)) {
    return fail(GRAFT_OUT_OF_MEMORY, "memory_import: no contiguous " + std::to_string(piece.bytes) +
                                         " bytes of addresses left");
  }
  if (!map(address, PROT_READ | PROT_WRITE, piece)) {
    range.give(address, piece.bytes);
    return fail(GRAFT_OUT_OF_MEMORY, "memory_import: mmap: " + std::string(strerror(errno)));
  }
  allocations_[address] = {piece.bytes, owner, true};
  *out_address = address;
  return GRAFT_OK;
}

graft_status Arena::give_back(uint32_t owner, graft_address address) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.owner != owner || !found->second.borrowed) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_release: the address is not from memory_import");
  }
  const uint64_t bytes = found->second.bytes;
  if (!map(address, PROT_NONE, {file_, address - base_, bytes})) {
    return fail(GRAFT_OUT_OF_MEMORY, "memory_release: mmap: " + std::string(strerror(errno)));
  }
  frees_.fetch_add(1, std::memory_order_release);
  allocations_.erase(found);
  range_of(bytes).give(address, bytes);
  return GRAFT_OK;
}

Range& Arena::range_of(uint64_t rounded) { return rounded < kHugePage ? *small_ : *large_; }

uint64_t Arena::held(uint32_t owner) {
  std::lock_guard lock(mutex_);
  return held_[owner];
}

bool Arena::owns(uint32_t owner, graft_address address, uint64_t bytes, Known* known) {
  const auto inside = [&] {
    uint64_t offset = address - known->begin;
    return known->owner == owner && offset <= known->bytes && bytes <= known->bytes - offset;
  };
  if (known->frees == frees_.load(std::memory_order_acquire) && inside()) return true;
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto& [begin, allocation] = *std::prev(after);
  *known = {begin, allocation.bytes, allocation.owner, frees_.load(std::memory_order_relaxed)};
  return inside();
}

graft_status Arena::open(graft_address address, uint64_t bytes) {
  void* pointer = reinterpret_cast<void*>(address + delta_);
  if (mprotect(pointer, bytes, PROT_READ | PROT_WRITE) == 0) return GRAFT_OK;
  return fail(GRAFT_OUT_OF_MEMORY, "mprotect: " + std::string(strerror(errno)));
}

void Arena::close(graft_address address, uint64_t bytes) {
  mprotect(reinterpret_cast<void*>(address + delta_), bytes, PROT_NONE);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(address - base_),
            off_t(bytes));
}

// Replaces what lies behind the kernels' addresses; host code is kept out of the device's own.
bool Arena::map(graft_address address, int protection, const Piece& piece) {
  void* pointer = reinterpret_cast<void*>(address + delta_);
  if (mmap(pointer, piece.bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, piece.file,
           off_t(piece.offset)) == MAP_FAILED) {
    return false;
  }
  madvise(pointer, piece.bytes, MADV_DONTFORK);
  if (address - base_ >= bytes_ / 8) madvise(pointer, piece.bytes, MADV_HUGEPAGE);
  return true;
}

}  // namespace graft::host
