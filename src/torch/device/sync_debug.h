// src/torch/device/sync_debug.h: tells of operators that wait for the device.
#pragma once

#include <atomic>

namespace graft::binding {

// What happens when an operator waits for the device. The numbers are those that torch.cuda's
// set_sync_debug_mode takes.
enum class SyncDebugMode : int { kSilent = 0, kWarn = 1, kError = 2 };

namespace detail {
extern constinit std::atomic<SyncDebugMode> sync_debug_mode;
void warn_or_throw(const char* what);
}  // namespace detail

// The mode of the whole process, kSilent at first. Thread-safe.
inline SyncDebugMode sync_debug_mode() noexcept {
  return detail::sync_debug_mode.load(std::memory_order_relaxed);
}
void set_sync_debug_mode(SyncDebugMode mode) noexcept;

// An operator calls this before it waits for the device, with what it waits for: warns or throws
// c10::Error, as the mode says. Waits that the user asked for (synchronize) are not told of.
inline void tell_of_wait(const char* what) {
  if (sync_debug_mode() != SyncDebugMode::kSilent) [[unlikely]]
    detail::warn_or_throw(what);
}

}  // namespace graft::binding
