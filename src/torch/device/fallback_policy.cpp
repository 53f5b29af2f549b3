// src/torch/device/fallback_policy.cpp: whether an operator without a kernel may run on the CPU.
#include "torch/device/fallback_policy.h"

#include <c10/util/Exception.h>

#include <cstdlib>

#include "torch/device/type.h"

namespace graft::binding {
namespace {

struct PolicyName {
  FallbackPolicy policy;
  const char* name;
};
constexpr PolicyName kPolicies[] = {{FallbackPolicy::kOff, "off"},
                                    {FallbackPolicy::kWarn, "warn"},
                                    {FallbackPolicy::kForbid, "forbid"}};

FallbackPolicy policy_of_environment() {
  const char* wanted = std::getenv("GRAFT_FALLBACK");
  if (wanted == nullptr || *wanted == '\0') return FallbackPolicy::kWarn;
  for (const PolicyName& one : kPolicies) {
    if (one.name == std::string(wanted)) return one.policy;
  }
  TORCH_WARN("GRAFT_FALLBACK=", wanted,
             " is unknown: give off, warn or forbid. Graft uses 'warn'.");
  return FallbackPolicy::kWarn;
}

std::atomic<FallbackPolicy>& policy() {
  static std::atomic<FallbackPolicy> policy{policy_of_environment()};
  return policy;
}

}  // namespace

FallbackPolicy fallback_policy() { return policy(); }
void set_fallback_policy(FallbackPolicy wanted) { policy() = wanted; }

std::string policy_name(FallbackPolicy wanted) {
  for (const PolicyName& one : kPolicies) {
    if (one.policy == wanted) return one.name;
  }
  return "unknown";
}

FallbackPolicy policy_named(const std::string& name) {
  for (const PolicyName& one : kPolicies) {
    if (one.name == name) return one.policy;
  }
  TORCH_CHECK(false, "there is no fallback policy '", name, "': give off, warn or forbid");
}

void apply_fallback_policy(const std::string& op, std::atomic<bool>* warned) {
  const FallbackPolicy now = fallback_policy();
  const std::string device = device_name();
  TORCH_CHECK(now != FallbackPolicy::kForbid, op, " has no kernel for these arguments on device '",
              device, "', and running it on the CPU is forbidden (GRAFT_FALLBACK=forbid or torch.",
              device,
              ".fallback.forbid()). Allow it with GRAFT_FALLBACK=warn, or move the tensors "
              "to the CPU yourself.");
  if (now == FallbackPolicy::kWarn && !warned->exchange(true)) {
    TORCH_WARN(op, " has no kernel for these arguments on device '", device,
               "' and runs on the CPU, counted in torch.", device,
               ".fallback; silence this with GRAFT_FALLBACK=off, forbid it with "
               "GRAFT_FALLBACK=forbid.");
  }
}

}  // namespace graft::binding
