// drivers/veda/memory.h: the memory of one device, found by the addresses that its kernels use.
#ifndef GRAFT_DRIVERS_VEDA_MEMORY_H_
#define GRAFT_DRIVERS_VEDA_MEMORY_H_

#include <cstdint>

#include "api.h"
#include "graft/driver.h"
#include "graft/driver_memory.h"

namespace graft::veda {

// An address of Graft's is the Vector Engine's own (vedaMemPtr), so a kernel may take it from an
// argument or load it from memory alike. VEDA's calls take its virtual pointers, which these are.
using Allocations = AddressSpace<VEDAdeviceptr>;

// VEDA's pointer so many bytes further on.
inline VEDAdeviceptr advanced(VEDAdeviceptr pointer, uint64_t bytes) {
  return reinterpret_cast<VEDAdeviceptr>(reinterpret_cast<uint64_t>(pointer) + bytes);
}

// OK, or INVALID_ARGUMENT with a text that names the bytes.
graft_status check_range(graft_device device, graft_address address, uint64_t bytes,
                         VEDAdeviceptr* out);

// Slots of the table, see driver.h.
struct MemorySlots {
  static graft_status memory_allocate(graft_device device, uint64_t bytes, graft_address* out);
  static graft_status memory_free(graft_device device, graft_address address);
  static graft_status memory_info(graft_device device, uint64_t* out_free, uint64_t* out_total);
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_MEMORY_H_
