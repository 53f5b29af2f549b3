// include/graft/driver_memory.h: the addresses of a device's memory, for drivers written in C++;
// optional, inline only.
//
// Graft computes with addresses: a slot gets any address inside an allocation (rule 6 of driver.h).
// A vendor's library may know its memory by handles instead. An AddressSpace finds the handle and
// the offset of an address:
//
//   struct Device { graft::AddressSpace<acme_buffer> memory; };
//
//   graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
//     acme_buffer buffer = acme_create(bytes);
//     if (buffer == nullptr) return graft::fail(GRAFT_OUT_OF_MEMORY, acme_message());
//     *out = device->memory.reserve(bytes, buffer);
//     if (*out != 0) return GRAFT_OK;
//     acme_destroy(buffer);
//     return graft::fail(GRAFT_OUT_OF_MEMORY, "no range of addresses is left");
//   }
//   graft_status memory_free(graft_device device, graft_address address) {
//     const auto place = device->memory.remove(address);
//     if (!place) return graft::fail(GRAFT_INVALID_ARGUMENT, "not an address of memory_allocate");
//     return acme_destroy(place->handle), GRAFT_OK;
//   }
//   graft_status fill(graft_stream stream, graft_address address, ...) {
//     const auto place = stream->device->memory.find(address, bytes);
//     if (!place) return graft::fail(GRAFT_INVALID_ARGUMENT, "not inside one allocation");
//     acme_queue_fill(stream->queue, place->handle, place->offset, ...);
//
// A chip whose kernels load addresses from memory needs the chip's addresses: add() takes those.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_MEMORY_H_
#define GRAFT_DRIVER_MEMORY_H_

#include <sys/mman.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "graft/driver.h"

// Two drivers of one process must not share this code: each may be built with another release of
// the header.
#pragma GCC visibility push(hidden)

namespace graft {

// The allocations of one device by their addresses. Handle: what the vendor's library knows an
// allocation by, copied freely. The space owns ranges of addresses, no handle. Thread-safe; throws
// std::bad_alloc only.
template <class Handle>
class AddressSpace {
 public:
  // Where an address is.
  struct Place {
    Handle handle{};
    uint64_t offset = 0;      // bytes from the allocation's begin
    uint64_t bytes = 0;       // of the allocation
    graft_address begin = 0;  // its first address
  };

  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  // Gives the ranges back; handles that are left stay the caller's.
  ~AddressSpace() {
    for (const auto& [begin, one] : allocations_) unmap(begin, one);
  }

  // Adds an allocation of bytes > 0 and returns its first address, a multiple of 4096: a range of
  // this process that nothing else uses and no code may touch. The address behind it belongs to no
  // allocation. Returns 0 if no range is left.
  graft_address reserve(uint64_t bytes, Handle handle) {
    void* range =
        mmap(nullptr, bytes + kGap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return 0;
    const auto begin = reinterpret_cast<graft_address>(range);
    insert(begin, {bytes, std::move(handle), true});
    return begin;
  }

  // Adds an allocation of bytes > 0 at the chip's own address begin. REQUIRES: the range overlaps
  // no other.
  void add(graft_address begin, uint64_t bytes, Handle handle) {
    insert(begin, {bytes, std::move(handle), false});
  }

  // Takes out the allocation that begins there; nothing if none does.
  std::optional<Place> remove(graft_address begin) {
    std::lock_guard<std::shared_mutex> lock(mutex_);
    const auto found = allocations_.find(begin);
    if (found == allocations_.end()) return std::nullopt;
    Place place{std::move(found->second.handle), 0, found->second.bytes, begin};
    held_ -= found->second.bytes;
    unmap(begin, found->second);
    allocations_.erase(found);
    return place;
  }

  // Where bytes from address on are; nothing if they do not all belong to one allocation. The end
  // of an allocation belongs to it if bytes is 0.
  std::optional<Place> find(graft_address address, uint64_t bytes) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return std::nullopt;
    const auto& [begin, one] = *std::prev(after);
    const uint64_t offset = address - begin;
    if (offset > one.bytes || bytes > one.bytes - offset) return std::nullopt;
    return Place{one.handle, offset, one.bytes, begin};
  }

  // Bytes of all allocations.
  uint64_t held() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return held_;
  }

  // Calls visit(begin, bytes, handle) for each allocation, by its address. visit calls no function
  // of this space.
  template <class Visit>
  void each(Visit visit) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    for (const auto& [begin, one] : allocations_) visit(begin, one.bytes, one.handle);
  }

 private:
  struct Allocation {
    uint64_t bytes;
    Handle handle;
    bool reserved;
  };
  static constexpr uint64_t kGap = 4096;

  void insert(graft_address begin, Allocation one) {
    std::lock_guard<std::shared_mutex> lock(mutex_);
    const uint64_t bytes = one.bytes;
    try {
      allocations_.insert_or_assign(begin, std::move(one));
    } catch (...) {
      unmap(begin, one);
      throw;
    }
    held_ += bytes;
  }
  static void unmap(graft_address begin, const Allocation& one) {
    if (one.reserved) munmap(reinterpret_cast<void*>(begin), one.bytes + kGap);
  }

  mutable std::shared_mutex mutex_;
  std::map<graft_address, Allocation> allocations_;  // by their begins; guarded by mutex_
  uint64_t held_ = 0;                                // guarded by mutex_
};

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_MEMORY_H_
