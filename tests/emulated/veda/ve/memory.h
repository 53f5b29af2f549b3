// tests/emulated/veda/ve/memory.h: the memory of one device and the map of its pointers.
#ifndef GRAFT_TESTS_EMULATED_VEDA_VE_MEMORY_H_
#define GRAFT_TESTS_EMULATED_VEDA_VE_MEMORY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "drivers/veda/api.h"

namespace emulated {

// What a pointer stands for here.
struct Segment {
  std::uint64_t raw = 0;
  std::uint64_t size = 0;
  bool delayed = false;   // device code allocated it
  bool assigned = false;  // the memory belongs to another one
};

// Thread-safe. Addresses start at 32 TiB + device TiB, where no process of Linux puts anything by
// itself, and are never used twice: an access to freed memory ends the device.
class Memory {
 public:
  Memory(int device, std::uint64_t limit);

  std::uint64_t allocate_raw(std::uint64_t size);  // 0 if the memory is used up
  VEDAresult free_raw(std::uint64_t raw);

  std::uint64_t allocate(std::uint64_t pointer, std::uint64_t size);
  void assign(std::uint64_t pointer, std::uint64_t raw, std::uint64_t size);
  VEDAresult allocate_delayed(std::uint64_t pointer, std::uint64_t size, std::uint64_t* raw);
  VEDAresult free(std::uint64_t pointer);          // by the host: an absent one is well
  VEDAresult free_delayed(std::uint64_t pointer);  // by device code
  VEDAresult release(std::uint64_t pointer);
  VEDAresult swap(std::uint64_t first, std::uint64_t second);
  Segment find(std::uint64_t pointer);  // size 0 if it has no memory

  // The raw address of pointer, if size bytes from there are its own.
  VEDAresult resolve(std::uint64_t pointer, std::uint64_t size, std::uint64_t* raw);

 private:
  std::mutex mutex_;
  const std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::uint64_t next_;
  std::map<std::uint64_t, std::uint64_t> sizes_;  // raw address to size
  std::unordered_map<std::uint32_t, Segment> segments_;

  std::uint64_t map_locked(std::uint64_t size);
  void unmap_locked(std::uint64_t raw);
};

// Sets rows of columns elements of width bytes, pitch bytes apart.
void fill(void* to, std::uint64_t width, const std::uint64_t (&value)[2], std::uint64_t columns,
          std::uint64_t rows, std::uint64_t pitch);

// The memory of this process. REQUIRES: start_memory ran.
Memory& memory();
void start_memory(int device, std::uint64_t limit);

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_VE_MEMORY_H_
