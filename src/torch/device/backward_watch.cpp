// src/torch/device/backward_watch.cpp: sees the first backward pass on a device.
#include "torch/device/backward_watch.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "torch/device/type.h"

namespace graft::binding {
namespace {

struct Watch {
  std::mutex mutex;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  std::function<void()> seen;
};

// Leaked: threads of autograd may outlive static objects.
Watch& watch() {
  static auto* const only = new Watch;
  return *only;
}

std::function<void()> take() {
  const std::lock_guard lock(watch().mutex);
  const auto handle = std::exchange(watch().handle, at::INVALID_CALLBACK_HANDLE);
  if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
  return std::exchange(watch().seen, nullptr);
}

bool ours(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const auto type = value.toTensor().device().type();
  return type == kDeviceType || type == kSlotType;
}

std::unique_ptr<at::ObserverContext> before_node(const at::RecordFunction& node) {
  const auto gradients = node.inputs();
  if (std::any_of(gradients.begin(), gradients.end(), ours)) {
    if (const auto seen = take()) seen();
  }
  return nullptr;
}

}  // namespace

void watch_first_backward(std::function<void()> seen) {
  unwatch_backward();
  const std::lock_guard lock(watch().mutex);
  watch().seen = std::move(seen);
  watch().handle = at::addGlobalCallback(at::RecordFunctionCallback(&before_node)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

void unwatch_backward() { take(); }

}  // namespace graft::binding
