// tests/emulated/veda/library/memory_map.h: the host's map of a device's pointers to what is known
// of their memory.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_MEMORY_MAP_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_MEMORY_MAP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "drivers/veda/api.h"

namespace emulated {

// What the host knows of one pointer. The raw address comes when the device has allocated it.
struct Allocation {
  VEDAdeviceptr pointer = nullptr;
  std::atomic<std::uint64_t> raw{0};
  std::atomic<std::uint64_t> size{0};
  bool delayed = false;  // device code allocates it
  std::atomic<bool> released{false};
};
using AllocationHandle = std::shared_ptr<Allocation>;

// Thread-safe.
class MemoryMap {
 public:
  // limit: how many pointers there may be, and the largest index.
  MemoryMap(int device, std::uint32_t limit) : device_(device), limit_(limit) {}

  AllocationHandle add(std::size_t size);        // throws Failure(OUT_OF_MEMORY)
  AllocationHandle find(VEDAdeviceptr pointer);  // throws Failure(UNKNOWN_VPTR)
  void remove(VEDAdeviceptr pointer);
  void swap(VEDAdeviceptr first, VEDAdeviceptr second);  // throws Failure(UNKNOWN_VPTR)
  std::vector<AllocationHandle> all();
  // Forgets everything. The next index is then 0, the invalid one, as in VEDA.
  void clear();

 private:
  const int device_;
  const std::uint32_t limit_;
  std::mutex mutex_;
  std::uint32_t next_ = 1;
  std::unordered_map<std::uint32_t, AllocationHandle> allocations_;

  void advance();
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_MEMORY_MAP_H_
