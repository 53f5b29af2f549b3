// drivers/host/memory/arena.h: the address space of all simulated devices.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_ARENA_H_
#define GRAFT_DRIVERS_HOST_MEMORY_ARENA_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "graft/driver.h"
#include "range.h"

namespace graft::host {

// One memory file mapped twice: device addresses, which host code cannot touch, and the same bytes
// at a constant distance for kernels and copies. Without protection both are one; without sharing
// as well there is no file, and the pages may be huge. Thread-safe.
class Arena {
 public:
  // The arena of the process, reserved at first use; NULL, with a message, when that failed.
  static Arena* get();

  // Memory of one owner (a device's ordinal).
  graft_status allocate(uint32_t owner, uint64_t bytes, graft_address* out_address);
  graft_status free(uint32_t owner, graft_address address);

  // Frees all that owner has allocated, mapped and reserved.
  void free_all(uint32_t owner);

  // A piece of a memory file: of this arena's, or of that of another process.
  struct Piece {
    int file;
    uint64_t offset, bytes;
  };

  // The whole allocation of owner around address as a piece of this arena's file, and its begin.
  graft_status piece(uint32_t owner, graft_address address, Piece* out_piece,
                     graft_address* out_begin);

  // Gives another process's piece addresses of owner, and takes them away again. The file may be
  // closed in between. Neither counts for held().
  graft_status borrow(uint32_t owner, const Piece& piece, graft_address* out_address);
  graft_status give_back(uint32_t owner, graft_address address);

  // Addresses without memory, and memory behind them: the slots memory_reserve to
  // memory_unreserve. bytes and addresses are multiples of kMapUnit.
  static constexpr uint64_t kMapUnit = 2 << 20;
  graft_status reserve_range(uint32_t owner, uint64_t bytes, graft_address* out_address);
  graft_status map_range(uint32_t owner, graft_address address, uint64_t bytes);
  graft_status unmap_range(uint32_t owner, graft_address address, uint64_t bytes);
  graft_status release_range(uint32_t owner, graft_address address);

  // Bytes that owner holds, rounded as the arena rounds.
  uint64_t held(uint32_t owner);

  // An allocation that a caller asked for before; it saves the next search. Not thread-safe.
  struct Known {
    uint64_t begin = 0, bytes = 0;
    uint32_t owner = 0;
    uint64_t frees = 0;  // how many there had been: a later one may have taken it away
  };

  // Whether [address, address + bytes) lies inside one allocation of owner.
  bool owns(uint32_t owner, graft_address address, uint64_t bytes, Known* known);

  // Translates a device address; false outside the arena. Says nothing of allocations: cheap.
  bool translate(graft_address address, void** out_pointer) const {
    if (address - base_ >= bytes_) return false;
    *out_pointer = reinterpret_cast<void*>(address + delta_);
    return true;
  }

 private:
  struct Allocation {
    uint64_t bytes;  // rounded
    uint32_t owner;
    bool borrowed = false;  // another process's memory
    bool mapped = false;    // by map_range
  };

  Arena() = default;
  graft_status reserve();
  graft_status open(graft_address address, uint64_t bytes);
  void close(graft_address address, uint64_t bytes);
  bool map(graft_address address, int protection, const Piece& piece);
  Range& range_of(uint64_t rounded);  // REQUIRES: mutex_ is held

  uint64_t base_ = 0;   // first device address
  uint64_t bytes_ = 0;  // of one of the two ranges
  uint64_t delta_ = 0;  // kernel address less device address
  int file_ = -1;       // -1: none
  std::atomic<uint64_t> frees_{0};

  std::mutex mutex_;
  // Guarded by mutex_:
  std::unique_ptr<Range> small_, large_;
  std::map<graft_address, Allocation> allocations_;  // those mapped side by side are one
  std::map<graft_address, Allocation> reserved_;
  std::map<uint32_t, uint64_t> held_;
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_ARENA_H_
