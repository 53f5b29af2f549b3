// src/torch/device/scope.h: makes a device current for the time of one operator.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "torch/device/current.h"

namespace graft::binding {

// What c10::OptionalDeviceGuard is to every device type, for ours alone and without its calls
// through a table: generated operators use it. Holds no device at first; the one that was current
// comes back when the scope ends. Throws RuntimeError for an index out of range.
class DeviceScope {
 public:
  DeviceScope() = default;
  explicit DeviceScope(std::optional<c10::Device> device) {
    if (device.has_value()) reset_device(*device);
  }
  ~DeviceScope() {
    if (thread_ != nullptr) thread_->device = before_;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // Makes device current; another type of device, or an index below 0, changes nothing.
  void reset_device(c10::Device device) {
    if (thread_ == nullptr) {
      thread_ = &detail::current;
      before_ = thread_->device;
    }
    device_ = device;
    if (device.type() == kDeviceType && device.index() != thread_->device) {
      set_current_device(device.index());
    }
  }

  // The device given last; none before reset_device.
  std::optional<c10::Device> current_device() const {
    return thread_ == nullptr ? std::nullopt : std::optional(device_);
  }

 private:
  detail::Current* thread_ = nullptr;  // null: holds none
  c10::DeviceIndex before_ = 0;
  c10::Device device_{kDeviceType};
};

}  // namespace graft::binding
