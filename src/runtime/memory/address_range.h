// src/runtime/memory/address_range.h: device addresses that get their memory piece by piece.
#pragma once

#include <cstdint>
#include <memory>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

class OpenDevice;

// Reserved addresses of a device. Owns the reservation and what it mapped of it, which is a list of
// its user's to keep. Any thread, one at a time.
class AddressRange {
 public:
  // Whether the driver reserves and maps, and the device states a granularity.
  static bool possible(const OpenDevice& device);

  // Twice as much as the device has memory: a long block fits behind the short ones that stay.
  // Null if the driver has so many addresses no more. REQUIRES: possible, and the device outlives
  // the range.
  static std::unique_ptr<AddressRange> reserve(OpenDevice& device);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  graft_address begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t granularity() const { return granularity_; }

  // Puts memory there, and takes it away. Addresses and bytes are multiples of the granularity.
  // Throws Error OutOfMemory (direct_allocator.h) or what else the driver says. REQUIRES of unmap:
  // no unfinished command uses the memory.
  void map(graft_address address, uint64_t bytes);
  void unmap(graft_address address, uint64_t bytes) noexcept;

  // Gives the addresses back. REQUIRES: nothing is mapped.
  void close() noexcept;

 private:
  AddressRange(OpenDevice& device, graft_address begin, uint64_t bytes);

  OpenDevice& device_;
  graft_address begin_;
  const uint64_t bytes_;
  const uint64_t granularity_;
};

// Asked before memory is taken from the driver: whether to map it, if the device can. Nothing is
// mapped before a source is set. Any thread.
using MappingWish = bool (*)() noexcept;
GRAFT_EXPORT void set_mapping_wish(MappingWish wish) noexcept;
bool mapping_is_wished() noexcept;

}  // namespace graft
