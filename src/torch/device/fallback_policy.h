// src/torch/device/fallback_policy.h: whether an operator without a kernel may run on the CPU.
#pragma once

#include <atomic>
#include <string>

namespace graft::binding {

// What becomes of an operator without a kernel. GRAFT_FALLBACK=off|warn|forbid sets it at start.
enum class FallbackPolicy {
  kOff,    // counted, silent
  kWarn,   // counted, one warning for each operator
  kForbid  // an error that names the operator
};
FallbackPolicy fallback_policy();
void set_fallback_policy(FallbackPolicy policy);

// The policy's name as in GRAFT_FALLBACK, and back; throws RuntimeError for an unknown name.
std::string policy_name(FallbackPolicy policy);
FallbackPolicy policy_named(const std::string& name);

// Before op runs on the CPU: throws RuntimeError that names it if the policy forbids that. Warns if
// the policy says so, unless *warned, which is true then.
void apply_fallback_policy(const std::string& op, std::atomic<bool>* warned);

}  // namespace graft::binding
