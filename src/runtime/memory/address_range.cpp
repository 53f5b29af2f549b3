// src/runtime/memory/address_range.cpp: device addresses that get their memory piece by piece.
#include "runtime/memory/address_range.h"

#include <atomic>
#include <bit>
#include <string>
#include <utility>

#include "runtime/driver/open_device.h"
#include "runtime/memory/direct_allocator.h"

namespace graft {
namespace {

std::atomic<MappingWish> mapping_wish{nullptr};

}  // namespace

void set_mapping_wish(MappingWish wish) noexcept { mapping_wish.store(wish); }

bool mapping_is_wished() noexcept {
  const MappingWish wish = mapping_wish.load();
  return wish != nullptr && wish();
}

bool AddressRange::possible(const OpenDevice& device) {
  const graft_driver_table& table = device.driver().table();
  return table.memory_reserve != nullptr && table.memory_map != nullptr &&
         table.memory_unmap != nullptr && table.memory_unreserve != nullptr &&
         std::has_single_bit(device.properties().map_granularity);
}

AddressRange::AddressRange(OpenDevice& device, graft_address begin, uint64_t bytes)
    : device_(device),
      begin_(begin),
      bytes_(bytes),
      granularity_(device.properties().map_granularity) {}

std::unique_ptr<AddressRange> AddressRange::reserve(OpenDevice& device) {
  const uint64_t unit = device.properties().map_granularity;
  const uint64_t memory = device.properties().memory_bytes;
  const uint64_t bytes = 2 * ((memory + unit - 1) / unit * unit);
  graft_address begin = 0;
  const graft_status status =
      Driver::call(device.driver().table().memory_reserve, device.handle(), bytes, &begin);
  if (status == GRAFT_OUT_OF_MEMORY) return nullptr;
  device.check(status, "memory_reserve");
  if (begin == 0 || begin % unit != 0) {
    throw Error(GRAFT_INTERNAL, device.label() + ": memory_reserve gave the address " +
                                    std::to_string(begin) + ", expected a multiple of " +
                                    std::to_string(unit) + " other than 0.");
  }
  return std::unique_ptr<AddressRange>(new AddressRange(device, begin, bytes));
}

AddressRange::~AddressRange() { close(); }

void AddressRange::map(graft_address address, uint64_t bytes) {
  const graft_status status =
      Driver::call(device_.driver().table().memory_map, device_.handle(), address, bytes);
  if (status == GRAFT_OUT_OF_MEMORY) throw OutOfMemory("", device_.driver().message(status));
  device_.check(status, "memory_map");
}

void AddressRange::unmap(graft_address address, uint64_t bytes) noexcept {
  Driver::call(device_.driver().table().memory_unmap, device_.handle(), address, bytes);
}

void AddressRange::close() noexcept {
  if (const graft_address address = std::exchange(begin_, 0)) {
    Driver::call(device_.driver().table().memory_unreserve, device_.handle(), address);
  }
}

}  // namespace graft
