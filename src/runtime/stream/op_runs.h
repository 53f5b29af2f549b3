// src/runtime/stream/op_runs.h: what ran for each op: the vendor's kernels, its libraries, or ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/driver/export.h"

namespace graft {

enum class RunKind : uint8_t { kVendor, kLibrary, kGenerated };

// From now on streams count their commands, from none; or no longer. Thread-safe, as what follows.
GRAFT_EXPORT void count_runs(bool on);

// {"aten::add.Tensor": [vendor, library, generated], ...}: what was counted since it began.
GRAFT_EXPORT std::string runs_json();

void add_run(std::string_view op, RunKind kind);

namespace op_runs_state {
extern std::atomic<bool> on;
}

// Costs one load.
inline bool runs_are_counted() noexcept {
  return op_runs_state::on.load(std::memory_order_relaxed);
}

}  // namespace graft
