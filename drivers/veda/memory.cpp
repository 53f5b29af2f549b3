// drivers/veda/memory.cpp: the memory of one device, found by the addresses that its kernels use.
#include "memory.h"

#include <algorithm>
#include <string>

#include "context.h"
#include "device.h"
#include "graft/driver_slot.h"

namespace graft::veda {

graft_status check_range(graft_device device, graft_address address, uint64_t bytes,
                         VEDAdeviceptr* out) {
  if (const auto place = device->memory.find(address, bytes)) {
    *out = advanced(place->handle, place->offset);
    return GRAFT_OK;
  }
  return fail(GRAFT_INVALID_ARGUMENT, std::to_string(bytes) + " bytes from " +
                                          std::to_string(address) +
                                          " on are not inside one allocation of the device");
}

namespace {

graft_status out_of_memory(graft_device device, uint64_t bytes, const std::string& said) {
  return fail(GRAFT_OUT_OF_MEMORY,
              std::to_string(bytes) + " bytes requested from " + device->listed.properties.name +
                  ", which has " + std::to_string(device->listed.properties.memory_bytes) +
                  " and has given this process " + std::to_string(device->memory.held()) + said);
}

// vedaMemAlloc. Index 0 is no pointer, yet a context that was reset gives it first.
Called allocate(uint64_t bytes, VEDAdeviceptr* out) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Called called = GRAFT_VEDA_CALL(MemAlloc, out, bytes);
    if (!called.ok() || VEDA_GET_IDX(*out) != 0) return called;
  }
  return {VEDA_ERROR_UNKNOWN_VPTR, "vedaMemAlloc"};
}

}  // namespace

// VEDA allocates late and reports no lack of memory: an allocation that failed has no address.
graft_status MemorySlots::memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == 0 || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_allocate: 0 bytes or no out pointer given");
  }
  if (bytes > device->listed.properties.max_allocation_bytes) {
    return out_of_memory(device, bytes, "");
  }
  Turn turn(device);
  if (graft_status status = turn.status(); status != GRAFT_OK) return status;
  VEDAdeviceptr pointer = nullptr;
  Called called = allocate(bytes, &pointer);
  if (called.result == VEDA_ERROR_OUT_OF_MEMORY) {
    return out_of_memory(device, bytes, ": " + called.text());
  }
  if (!called.ok()) return turn.failed(called, "allocating memory", GRAFT_INTERNAL);
  void* raw = nullptr;
  called = GRAFT_VEDA_CALL(MemPtr, &raw, pointer);
  if (called.ok() && raw != nullptr) {
    const graft_address begin = reinterpret_cast<uint64_t>(raw);
    device->memory.add(begin, bytes, pointer);
    *out = begin;
    return GRAFT_OK;
  }
  veda().MemFree(pointer);
  if (!called.ok()) {
    // Whoever waits may also learn here of what else went wrong.
    const graft_status status = turn.failed(called, "allocating memory", GRAFT_OUT_OF_MEMORY);
    if (status != GRAFT_OUT_OF_MEMORY) return status;
  }
  return out_of_memory(device, bytes, called.ok() ? "" : ": " + called.text());
}

graft_status MemorySlots::memory_free(graft_device device, graft_address address) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_free: no device given");
  if (forked()) return GRAFT_OK;
  const auto place = device->memory.remove(address);
  if (!place) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "memory_free: no allocation of the device begins at " + std::to_string(address));
  }
  if (device->is_lost()) return GRAFT_OK;
  Turn turn(device);
  if (turn.status() != GRAFT_OK) return GRAFT_OK;
  const Called called = GRAFT_VEDA_CALL(MemFree, place->handle);
  return called.ok() ? GRAFT_OK : turn.failed(called, "freeing memory", GRAFT_INTERNAL);
}

// vedaMemGetInfo would wait for all commands, to give the same numbers.
graft_status MemorySlots::memory_info(graft_device device, uint64_t* out_free,
                                      uint64_t* out_total) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_free == nullptr || out_total == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_info: no out pointer given");
  }
  *out_total = device->listed.properties.memory_bytes;
  *out_free = *out_total - std::min(*out_total, device->memory.held());
  return GRAFT_OK;
}

}  // namespace graft::veda
