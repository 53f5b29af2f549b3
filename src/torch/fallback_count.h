// src/torch/fallback_count.h: what fell back to the CPU, one counter for each operator.
#pragma once

#include <ATen/core/operator_name.h>

#include <atomic>
#include <mutex>
#include <string>

#include "torch/fallback.h"

namespace graft::binding {

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
