// src/torch/fallback.h: runs on the CPU what the device has no kernel for, and counts it.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

#include "runtime/error.h"
#include "torch/version/dispatch.h"

namespace graft::binding {

// Calls op's CPU kernel on host images of the device's tensors and brings back what it wrote and
// returned: right for views, in-place, out=, sparse tensors, tensor lists and optional tensors.
// Where the driver offers memory_host_view the images alias device memory and nothing is copied in.
// A random operator draws from a fresh CPU generator that the device's Philox state seeds, never
// from torch's. Throws RuntimeError where the policy forbids it.
void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack);

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

}  // namespace graft::binding
