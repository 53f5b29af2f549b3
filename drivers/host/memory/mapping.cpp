// drivers/host/memory/mapping.cpp: addresses that get their memory later.
#include "mapping.h"

#include <string>

#include "arena.h"
#include "device.h"
#include "graft/driver_slot.h"
#include "stream/fault.h"

namespace graft::host {
namespace {

graft_status check_range(graft_device device, graft_address address, uint64_t bytes,
                         const char* what) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes != 0 && bytes % Arena::kMapUnit == 0 && address % Arena::kMapUnit == 0) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": " + std::to_string(bytes) +
                                          " bytes at " + std::to_string(address) +
                                          " are no multiples of map_granularity, or 0");
}

}  // namespace

graft_status MappingSlots::memory_reserve(graft_device device, uint64_t bytes, graft_address* out) {
  if (graft_status status = check_range(device, 0, bytes, "memory_reserve"); status != GRAFT_OK)
    return status;
  if (out == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_reserve: no out pointer given");
  return device->arena->reserve_range(device->ordinal, bytes, out);
}

graft_status MappingSlots::memory_map(graft_device device, graft_address address, uint64_t bytes) {
  if (graft_status status = check_range(device, address, bytes, "memory_map"); status != GRAFT_OK)
    return status;
  if (strikes(Fault::kAllocate)) return fail(GRAFT_OUT_OF_MEMORY, "planted by GRAFT_HOST_FAULTS");
  return device->arena->map_range(device->ordinal, address, bytes);
}

// On a lost device, too: whoever gives memory back may do so.
graft_status MappingSlots::memory_unmap(graft_device device, graft_address address,
                                        uint64_t bytes) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_unmap: no device given");
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) return GRAFT_OK;
  if (bytes == 0 || bytes % Arena::kMapUnit != 0 || address % Arena::kMapUnit != 0)
    return check_range(device, address, bytes, "memory_unmap");
  return device->arena->unmap_range(device->ordinal, address, bytes);
}

graft_status MappingSlots::memory_unreserve(graft_device device, graft_address address) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_unreserve: no device given");
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) return GRAFT_OK;
  return device->arena->release_range(device->ordinal, address);
}

}  // namespace graft::host
