// src/runtime/driver/slot_gate.cpp: keeps threads out of the drivers while devices are closed.
#include "runtime/driver/slot_gate.h"

#include <thread>

namespace graft {

static std::atomic<std::thread::id> closing_thread{};

std::atomic<uint32_t> SlotGate::inside_{0};
std::atomic<bool> SlotGate::shut_{false};
std::atomic<bool> SlotGate::paused_{false};

namespace {

constexpr std::chrono::microseconds kPause(100);

}  // namespace

bool SlotGate::admitted() noexcept {
  if (closing_thread.load() == std::this_thread::get_id()) return true;
  while (shut_.load()) {
    if (!paused_.load()) return !shut_.load();
    inside_.fetch_sub(1);
    std::this_thread::sleep_for(kPause);
    inside_.fetch_add(1);
  }
  return true;
}

bool SlotGate::close(Clock::time_point deadline, bool paused) noexcept {
  closing_thread = std::this_thread::get_id();
  paused_ = paused;
  shut_ = true;
  while (inside_.load() != 0) {
    if (Clock::now() >= deadline) {
      open();
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool SlotGate::shut(Clock::time_point deadline) noexcept { return close(deadline, false); }

bool SlotGate::pause(Clock::time_point deadline) noexcept { return close(deadline, true); }

void SlotGate::open() noexcept {
  shut_ = false;
  paused_ = false;
  closing_thread = std::thread::id();
}

}  // namespace graft
