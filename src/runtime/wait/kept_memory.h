// src/runtime/wait/kept_memory.h: host memory that commands may still use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace graft {

class PendingOps;

// Memory of waits that ended early, held until a stream's commands up to then are done.
class KeptMemory {
 public:
  // Holds memory for the first so many commands. REQUIRES: the stream's lock is held.
  void add(uint64_t commands, std::shared_ptr<const void> memory);

  // Lets go what commands that are done used. Takes the stream's lock, but destroys without it: a
  // tensor's memory may be Python's. Costs a load where nothing is held.
  void release(const PendingOps& ops, std::mutex& lock) noexcept {
    if (__builtin_expect(any_.load(std::memory_order_relaxed), 0)) release_done(ops, lock);
  }

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<const void>>;

  void release_done(const PendingOps& ops, std::mutex& lock) noexcept;

  std::vector<Entry> entries_;    // by commands before
  std::atomic<bool> any_{false};  // whether entries_ holds any
};

// Where the bytes of a read arrive: a copy whose wait ended early may still write there, so it is
// never the reader's own memory. A thread keeps a small one for its next read. Dies on its thread.
class LandingMemory {
 public:
  explicit LandingMemory(uint64_t bytes);
  ~LandingMemory();
  LandingMemory(const LandingMemory&) = delete;
  LandingMemory& operator=(const LandingMemory&) = delete;

  std::byte* get() const { return bytes_.get(); }

  // For whoever keeps it until the copy is done.
  std::shared_ptr<const void> hand_over() {
    return std::shared_ptr<const std::byte[]>(std::move(bytes_));
  }

 private:
  std::unique_ptr<std::byte[]>* const home_;  // the thread's small one; null for many bytes
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace graft
