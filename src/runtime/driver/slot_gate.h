// src/runtime/driver/slot_gate.h: keeps threads out of the drivers while devices are closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/driver/export.h"

namespace graft {

// Held by every call of a slot that no lock of a stream protects from Device::close. After shut()
// no such call is made any more: whoever frees an event, a plan or a group then calls nothing.
// After pause() such calls wait until open().
class GRAFT_EXPORT SlotGate {
 public:
  using Clock = std::chrono::steady_clock;

  SlotGate() noexcept {
    inside_.fetch_add(1);
    passed_ = !shut_.load() || admitted();
  }
  ~SlotGate() { inside_.fetch_sub(1); }
  SlotGate(const SlotGate&) = delete;
  SlotGate& operator=(const SlotGate&) = delete;

  // Whether the slot may be called.
  bool passed() const { return passed_; }

  // From now on only the calling thread passes. Waits until no other thread is inside; false, and
  // the gate stays open, where one still is at the deadline. REQUIRES: the thread is not inside.
  static bool shut(Clock::time_point deadline) noexcept;

  // The same, but calls of other threads wait until open(). REQUIRES: the calling thread holds no
  // lock under which others call slots, Python's among them.
  static bool pause(Clock::time_point deadline) noexcept;

  // For a process that opens a device again, and after pause.
  static void open() noexcept;

 private:
  static bool admitted() noexcept;
  static bool close(Clock::time_point deadline, bool paused) noexcept;

  static std::atomic<uint32_t> inside_;
  static std::atomic<bool> shut_;
  static std::atomic<bool> paused_;  // shut_, and it opens again

  bool passed_;
};

}  // namespace graft
