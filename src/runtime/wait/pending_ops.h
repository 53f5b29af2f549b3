// src/runtime/wait/pending_ops.h: which operators a stream may still be working on.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace graft {

// The op tags of a stream's last commands, by number, for the message of a wait that took too long.
// Its stream's lock guards it, but for done.
class PendingOps {
 public:
  // One more command. About 1 ns.
  void add(uint32_t tag) {
    tags_[added_ % kKept] = tag;
    ++added_;
  }

  // How many commands there were.
  uint64_t added() const { return added_; }

  // The first so many commands are done. Any thread; of two at once one may be forgotten.
  void done(uint64_t count) {
    if (count > done()) done_.store(count, std::memory_order_relaxed);
  }

  uint64_t done() const { return done_.load(std::memory_order_relaxed); }

  // "aten::mm", or "aten::mm or one of the 3 commands after it": what a wait for the first so many
  // commands may be waiting for.
  std::string text(uint64_t count) const;
  // The tag of the oldest of them, 0 where none is known.
  uint32_t oldest(uint64_t count) const;

 private:
  uint64_t first(uint64_t count) const;

  static constexpr uint64_t kKept = 64;

  std::array<uint32_t, kKept> tags_{};
  uint64_t added_ = 0;
  std::atomic<uint64_t> done_{0};
};

}  // namespace graft
