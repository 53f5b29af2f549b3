// src/torch/device/fallback_count.h: what fell back to the CPU, one counter for each operator.
#pragma once

#include <ATen/core/operator_name.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/driver/error.h"
#include "torch/device/fallback_policy.h"

namespace graft::binding {

// What fell back since the last reset, by the operator's name ("aten::add.Tensor").
struct FallbackCount {
  uint64_t calls = 0;
  uint64_t bytes = 0;  // copied between device and host, both ways
  double seconds = 0;  // inside the CPU kernel and the copies
  std::string reason;  // why the device's last kernel could not be had; empty: Graft has none
};
std::map<std::string, FallbackCount> fallback_counts();
void reset_fallback_counts();

// Counts a call that an operator of ours did on the host itself (not through boxed_fallback), under
// the policy: warns or throws like it.
void count_fallback(const std::string& op, uint64_t bytes, double seconds);

// Keeps why as the reason of the operator that runs. Warns once in the process of what keeps
// kernels from being built (no compiler, no float64 on the device), and once of each kernel that
// the device's compiler rejects, with its log's first lines. why: an error that lacks_kernel().
void explain_fallback(const Error& why);

// Lives as long as the process. Thread-safe.
class FallbackCounter {
 public:
  explicit FallbackCounter(std::string op) : op_(std::move(op)) {}

  // "aten::add.Tensor"; never freed, so it may serve as an op tag.
  const char* name() const { return op_.c_str(); }

  // Before a fallback: warns once in the process, or throws RuntimeError, as the policy says.
  void announce();

  // After it.
  void add(uint64_t bytes, double seconds);

  // Why the device's kernel could not be had. told: another warning says so, this one's is not due.
  void explain(const std::string& reason, bool told);

  FallbackCount count() const;
  void reset();

 private:
  const std::string op_;
  std::atomic<bool> warned_{false};
  mutable std::mutex mutex_;
  FallbackCount count_;  // guarded by mutex_
};

// The counter of an operator.
FallbackCounter& fallback_counter(const c10::OperatorName& op);
FallbackCounter& fallback_counter(const std::string& op);

}  // namespace graft::binding
