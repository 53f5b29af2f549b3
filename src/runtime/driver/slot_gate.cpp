// src/runtime/driver/slot_gate.cpp: keeps threads out of the drivers while devices are closed for
// good.
#include "runtime/driver/slot_gate.h"

#include <thread>

namespace graft {

static std::atomic<std::thread::id> closing_thread{};

std::atomic<uint32_t> SlotGate::inside_{0};
std::atomic<bool> SlotGate::shut_{false};

bool SlotGate::mine() noexcept { return closing_thread.load() == std::this_thread::get_id(); }

bool SlotGate::shut(Clock::time_point deadline) noexcept {
  closing_thread = std::this_thread::get_id();
  shut_ = true;
  while (inside_.load() != 0) {
    if (Clock::now() >= deadline) {
      open();
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void SlotGate::open() noexcept { shut_ = false; }

}  // namespace graft
