// src/torch/tensor/device_guard.cpp: the guard of our device type.
#include "torch/tensor/device_guard.h"

#include "torch/device/attach.h"

namespace graft::binding {
namespace {

struct Slot {
  static constexpr c10::DeviceType kType = kDeviceType;
  static int count() noexcept { return device_count(); }
  static c10::DeviceIndex current() noexcept { return current_device(); }
  static void set_current(c10::DeviceIndex index) { set_current_device(index); }
  static void set_current_unchecked(c10::DeviceIndex index) noexcept {
    set_current_device_unchecked(index);
  }
  static c10::DeviceIndex platform_index(c10::DeviceIndex index) { return resolve(index); }
  static c10::DeviceIndex index_of(int index) { return static_cast<c10::DeviceIndex>(index); }
};

}  // namespace

void attach_guard() { c10::impl::registerDeviceGuard(kDeviceType, new DeviceGuard<Slot>); }

}  // namespace graft::binding
