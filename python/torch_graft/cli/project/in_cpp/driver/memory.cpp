// driver/memory.cpp: device memory, and pinned memory of the host.
//
// For the real chip: your SDK's allocator. Graft keeps freed memory for the next tensor, so these
// slots are called seldom and need not be fast. If the chip's memory is smaller than a model,
// GRAFT_OUT_OF_MEMORY makes Graft return what it keeps and ask again.
#include <cstdlib>
#include <string>

#include "handle.h"
#include "slots.h"

namespace acme_driver {

graft_status MemorySlots::memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  chip* const from = device->handle.get();
  const chip_status status = chip_memory_allocate(from, bytes, out);
  if (status != CHIP_NO_MEMORY) return status_of(status, "memory_allocate");
  return graft::fail(GRAFT_OUT_OF_MEMORY, std::to_string(bytes) + " bytes are wanted, " +
                                              std::to_string(chip_memory_left(from)) +
                                              " are left, not in one piece");
}

graft_status MemorySlots::memory_free(graft_device device, graft_address address) {
  return status_of(chip_memory_free(device->handle.get(), address), "memory_free");
}

graft_status MemorySlots::memory_info(graft_device device, uint64_t* out_free,
                                      uint64_t* out_total) {
  *out_free = chip_memory_left(device->handle.get());
  *out_total = CHIP_MEMORY_BYTES;
  return GRAFT_OK;
}

// For the real chip: memory that its DMA engine reaches.
graft_status MemorySlots::host_allocate(graft_device, uint64_t bytes, void** out_pointer) {
  constexpr uint64_t kPage = 4096;
  if (bytes > SIZE_MAX - kPage) bytes = SIZE_MAX - kPage;
  void* const pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (pointer == nullptr) {
    return graft::fail(GRAFT_OUT_OF_MEMORY, "host_allocate: no host memory is left");
  }
  *out_pointer = pointer;
  return GRAFT_OK;
}

graft_status MemorySlots::host_free(graft_device, void* pointer) {
  std::free(pointer);
  return GRAFT_OK;
}

}  // namespace acme_driver
