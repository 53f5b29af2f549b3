// src/runtime/stream/write_epochs.h: whether device memory was written since somebody looked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

class OpenDevice;

// A piece of device memory and how often it was written. Counted are the commands that Graft gave
// to a stream: launches, copies, fills, library calls, collectives and replays of recordings, from
// any thread. A command counts once it is in its queue: who sees a new epoch finds the write there,
// and what it orders behind the streams of the device reads the new values. Thread-safe.
class GRAFT_EXPORT WatchedMemory {
 public:
  uint64_t epoch() const { return writes_.load(std::memory_order_acquire); }

  // False once others than Graft may write: another process, work on a stream's native handle,
  // whoever was given the address. Stays false.
  bool trusted() const { return trusted_.load(std::memory_order_acquire); }

  // Whether address is the first of the allocation.
  bool begins_at(graft_address address) const { return address == address_; }

  // False once the memory was given back: then it is somebody else's.
  bool held() const { return held_.load(std::memory_order_acquire); }

 private:
  friend class WriteWatches;
  explicit WatchedMemory(graft_address address) : address_(address) {}

  const graft_address address_;
  std::atomic<uint64_t> writes_{0};
  std::atomic<bool> trusted_{true}, held_{true};
};

// Watches an allocation of bytes from address on until the last copy of the result dies; who
// watches the same memory shares it. REQUIRES: whoever gives the memory back calls note_release.
GRAFT_EXPORT std::shared_ptr<const WatchedMemory> watch_writes(const OpenDevice& device,
                                                               graft_address address,
                                                               uint64_t bytes);

// Whether anything is watched at all: below 1 ns, and all that a command pays where nothing is.
// To be asked after the command was given to its stream.
namespace detail {
extern GRAFT_EXPORT std::atomic<uint32_t> watched_count;
}
inline bool writes_are_watched() {
  return __builtin_expect(detail::watched_count.load(std::memory_order_relaxed) != 0, 0);
}

// A command that writes the allocation around address is in its queue; unknown addresses are none
// of ours. About 20 ns.
GRAFT_EXPORT void note_write(const OpenDevice& device, graft_address address) noexcept;

// A command that may write any memory of the device is in its queue.
GRAFT_EXPORT void note_any_write(const OpenDevice& device) noexcept;

// The allocation at address is given back.
GRAFT_EXPORT void note_release(const OpenDevice& device, graft_address address) noexcept;

// Others may write the allocation around address from now on.
GRAFT_EXPORT void distrust(const OpenDevice& device, graft_address address) noexcept;

// Others may write all memory of the device from now on, also what is watched later.
GRAFT_EXPORT void distrust_device(const OpenDevice& device) noexcept;

// The device is closed: another one may come to lie where it lay.
GRAFT_EXPORT void note_closed(const OpenDevice& device) noexcept;

}  // namespace graft
