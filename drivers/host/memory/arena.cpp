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
#include <utility>

#include "graft/driver_slot.h"
#include "settings.h"
#include "trap.h"

namespace graft::host {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2 << 20;
static_assert(kHugePage == Arena::kMapUnit);
// Times the devices' memory: each stream may reserve some for itself.
constexpr uint64_t kAddresses = 16;

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
  uint64_t wanted = std::bit_ceil(s.memory_bytes * s.devices) * kAddresses;
  // What is neither mapped twice nor shared needs no file, and so gets huge pages.
  const bool has_file = s.protect || s.share;
  if (has_file) file_ = memfd_create("graft-device-memory", MFD_CLOEXEC);
  if (has_file && file_ < 0) {
    return fail(GRAFT_IO, "memfd_create: " + std::string(strerror(errno)));
  }
  // Thread sanitizer and address limits leave less room than a plain process has.
  for (bytes_ = std::clamp<uint64_t>(wanted, uint64_t{1} << 30, uint64_t{1} << 39);
       bytes_ >= uint64_t{64} << 20; bytes_ /= 2) {
    void* both = mmap(nullptr, 2 * bytes_ + kHugePage, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (both == MAP_FAILED) continue;
    uint64_t begin = (reinterpret_cast<uint64_t>(both) + kHugePage - 1) / kHugePage * kHugePage;
    void* device = reinterpret_cast<void*>(begin);
    void* kernel = reinterpret_cast<void*>(begin + bytes_);
    int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (has_file && (ftruncate(file_, off_t(bytes_)) != 0 ||
                     mmap(device, bytes_, PROT_NONE, flags, file_, 0) == MAP_FAILED ||
                     mmap(kernel, bytes_, PROT_NONE, flags, file_, 0) == MAP_FAILED)) {
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
  if (has_file) ::close(file_);
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
  if (found == allocations_.end() || found->second.owner != owner || found->second.borrowed ||
      found->second.mapped) {
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

void Arena::free_all(uint32_t owner) {
  std::map<graft_address, Allocation> all, ranges;
  {
    std::lock_guard lock(mutex_);
    all = allocations_, ranges = reserved_;
  }
  for (const auto& [address, allocation] : all) {
    if (allocation.owner != owner || allocation.borrowed) continue;
    if (allocation.mapped) {
      unmap_range(owner, address, allocation.bytes);
    } else {
      free(owner, address);
    }
  }
  for (const auto& [address, range] : ranges) {
    if (range.owner == owner) release_range(owner, address);
  }
}

graft_status Arena::piece(uint32_t owner, graft_address address, Piece* out_piece,
                          graft_address* out_begin) {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    const auto& [begin, allocation] = *std::prev(after);
    if (address - begin < allocation.bytes && allocation.owner == owner && !allocation.borrowed) {
      if (allocation.mapped)
        return fail(GRAFT_UNSUPPORTED, "memory_export: the address was mapped by memory_map");
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

graft_status Arena::reserve_range(uint32_t owner, uint64_t bytes, graft_address* out_address) {
  std::lock_guard lock(mutex_);
  uint64_t kept = 2 * settings().memory_bytes * settings().devices;  // for memory_allocate
  for (const auto& [begin, range] : reserved_) kept += range.bytes;
  const uint64_t addresses = bytes_ / 8 * 7;
  graft_address address = 0;
  if (kept > addresses || bytes > addresses - kept || !large_->take(bytes, &address)) {
    return fail(GRAFT_OUT_OF_MEMORY,
                "memory_reserve: no contiguous " + std::to_string(bytes) + " addresses left");
  }
  reserved_[address] = {bytes, owner};
  *out_address = address;
  return GRAFT_OK;
}

graft_status Arena::map_range(uint32_t owner, graft_address address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto range = reserved_.upper_bound(address);
  const bool known = range != reserved_.begin() && (--range)->second.owner == owner &&
                     address - range->first <= range->second.bytes &&
                     bytes <= range->second.bytes - (address - range->first);
  auto after = allocations_.lower_bound(address);
  const auto before = after == allocations_.begin() ? allocations_.end() : std::prev(after);
  if (!known || (after != allocations_.end() && after->first - address < bytes) ||
      (before != allocations_.end() && address - before->first < before->second.bytes)) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "memory_map: the addresses are not reserved, or have memory already");
  }
  const uint64_t limit = settings().memory_bytes;
  if (bytes > limit || held_[owner] > limit - bytes) {
    return fail(GRAFT_OUT_OF_MEMORY,
                "device " + std::to_string(owner) + " has " + std::to_string(limit - held_[owner]) +
                    " bytes free, but got a request to map " + std::to_string(bytes));
  }
  if (graft_status status = open(address, bytes); status != GRAFT_OK) return status;
  held_[owner] += bytes;
  Allocation joined = {bytes, owner, false, true};
  graft_address begin = address;
  const graft_address end = range->first + range->second.bytes;
  if (before != allocations_.end() && before->second.mapped && before->first >= range->first &&
      before->first + before->second.bytes == address) {
    begin = before->first;
    joined.bytes += before->second.bytes;
  }
  if (after != allocations_.end() && after->second.mapped && after->first < end &&
      after->first == address + bytes) {
    joined.bytes += after->second.bytes;
    allocations_.erase(after);
  }
  allocations_[begin] = joined;
  return GRAFT_OK;
}

graft_status Arena::unmap_range(uint32_t owner, graft_address address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.upper_bound(address);
  const bool known = found != allocations_.begin() && (--found)->second.owner == owner &&
                     found->second.mapped && address - found->first <= found->second.bytes &&
                     bytes <= found->second.bytes - (address - found->first);
  if (!known) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_unmap: the addresses are not mapped");
  }
  frees_.fetch_add(1, std::memory_order_release);
  const auto [begin, whole] = *found;
  allocations_.erase(found);
  if (begin < address) allocations_[begin] = {address - begin, owner, false, true};
  const uint64_t rest = begin + whole.bytes - (address + bytes);
  if (rest != 0) allocations_[address + bytes] = {rest, owner, false, true};
  held_[owner] -= bytes;
  close(address, bytes);
  return GRAFT_OK;
}

graft_status Arena::release_range(uint32_t owner, graft_address address) {
  std::lock_guard lock(mutex_);
  const auto range = reserved_.find(address);
  const auto used = allocations_.lower_bound(address);
  if (range == reserved_.end() || range->second.owner != owner ||
      (used != allocations_.end() && used->first - address < range->second.bytes)) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "memory_unreserve: the address is not from memory_reserve, or memory is mapped");
  }
  large_->give(address, range->second.bytes);
  reserved_.erase(range);
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
  void* pointer = reinterpret_cast<void*>(address + delta_);
  mprotect(pointer, bytes, PROT_NONE);
  if (file_ < 0) {
    madvise(pointer, bytes, MADV_DONTNEED);
    return;
  }
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
