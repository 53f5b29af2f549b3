// drivers/veda/memory.h: the memory of one device, found by the addresses that its kernels use.
#ifndef GRAFT_DRIVERS_VEDA_MEMORY_H_
#define GRAFT_DRIVERS_VEDA_MEMORY_H_

#include <cstdint>
#include <map>
#include <shared_mutex>

#include "api.h"
#include "graft/driver.h"

namespace graft::veda {

// An address of Graft's is the Vector Engine's own (vedaMemPtr), so a kernel may take it from an
// argument or load it from memory alike. VEDA's calls take its virtual pointers, which this map
// finds. Thread-safe.
class Memory {
 public:
  // Adds an allocation of bytes > 0 at the device's address begin.
  void add(graft_address begin, uint64_t bytes, VEDAdeviceptr pointer);
  // Takes out the allocation that begins there; null if none does.
  VEDAdeviceptr remove(graft_address begin);
  // VEDA's pointer to bytes from address on; null if they do not all belong to one allocation. The
  // end of an allocation belongs to it if bytes is 0.
  VEDAdeviceptr find(graft_address address, uint64_t bytes) const;
  // Bytes of all allocations.
  uint64_t held() const;

 private:
  struct Allocation {
    uint64_t bytes;
    VEDAdeviceptr pointer;
  };

  mutable std::shared_mutex mutex_;
  std::map<graft_address, Allocation> allocations_;  // by their begin; guarded by mutex_
  uint64_t held_ = 0;                                // guarded by mutex_
};

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
