// src/torch/device/sync_debug.cpp: tells of operators that wait for the device.
#include "torch/device/sync_debug.h"

#include <c10/util/Exception.h>

#include "torch/device/type.h"

namespace graft::binding {

constinit std::atomic<SyncDebugMode> detail::sync_debug_mode{SyncDebugMode::kSilent};

void detail::warn_or_throw(const char* what) {
  const std::string name = device_name();
  TORCH_CHECK(binding::sync_debug_mode() != SyncDebugMode::kError, "called a synchronizing ", name,
              " operation: ", what);
  TORCH_WARN("called a synchronizing ", name, " operation: ", what);
}

void set_sync_debug_mode(SyncDebugMode mode) noexcept {
  detail::sync_debug_mode.store(mode, std::memory_order_relaxed);
}

}  // namespace graft::binding
