// src/torch/device/drivers.cpp: drivers as Python's users load them and hear of them.
#include "torch/device/drivers.h"

#include <c10/util/Exception.h>

#include <mutex>

#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/version/autograd.h"

namespace graft::binding {
namespace {

// Made at the first backward, one for each device.
class AutogradQueues : public torch::autograd::Engine {
 public:
  static bool made() {
    auto& engine = torch::autograd::Engine::get_default_engine();
    return !(engine.*(&AutogradQueues::device_ready_queues_)).empty();
  }
};

std::mutex mutex;
size_t told = 0;

}  // namespace

void load_driver(const std::string& path) {
  if (AutogradQueues::made()) platform().freeze();
  platform().load_driver(path);
}

void warn_of_refusals() noexcept {
  try {
    const std::lock_guard lock(mutex);
    const auto refusals = platform().refusals();
    while (told < refusals.size()) {
      const Refusal& refusal = refusals[told++];
      TORCH_WARN("Graft did not take the driver ", refusal.path, ": ", refusal.reason);
    }
  } catch (...) {  // the user makes errors of warnings
  }
}

}  // namespace graft::binding
