/* driver/memory.c: device memory, and pinned memory of the host.
 *
 * For the real chip: your SDK's allocator. Graft keeps freed memory for the next tensor, so these
 * slots are called seldom and need not be fast. If the chip's memory is smaller than a model,
 * GRAFT_OUT_OF_MEMORY makes Graft return what it keeps and ask again. */
#include <stdlib.h>

#include "driver.h"

enum { kPage = 4096 };

graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  const chip_status status = chip_memory_allocate(device->chip, bytes, out);
  if (status != CHIP_NO_MEMORY) return status_of(status, "memory_allocate");
  return failed(GRAFT_OUT_OF_MEMORY, "%llu bytes are wanted, %llu are left, not in one piece",
                (unsigned long long)bytes, (unsigned long long)chip_memory_left(device->chip));
}

graft_status memory_free(graft_device device, graft_address address) {
  return status_of(chip_memory_free(device->chip, address), "memory_free");
}

graft_status memory_info(graft_device device, uint64_t* out_free, uint64_t* out_total) {
  *out_free = chip_memory_left(device->chip);
  *out_total = CHIP_MEMORY_BYTES;
  return GRAFT_OK;
}

/* For the real chip: memory that its DMA engine reaches. */
graft_status host_allocate(graft_device device, uint64_t bytes, void** out_pointer) {
  (void)device;
  if (bytes > SIZE_MAX - kPage) bytes = SIZE_MAX - kPage;
  void* pointer = aligned_alloc(kPage, (size_t)(bytes + kPage - 1) / kPage * kPage);
  if (pointer == NULL) {
    return failed(GRAFT_OUT_OF_MEMORY, "host_allocate: no host memory is left");
  }
  *out_pointer = pointer;
  return GRAFT_OK;
}

graft_status host_free(graft_device device, void* pointer) {
  (void)device;
  free(pointer);
  return GRAFT_OK;
}
