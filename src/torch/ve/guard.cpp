// src/torch/ve/guard.cpp: the guard of torch.device("ve").
#include "torch/tensor/device_guard.h"
#include "torch/ve/attach.h"
#include "torch/ve/slot.h"

namespace graft::binding::ve {
namespace {

struct Slot {
  static constexpr c10::DeviceType kType = ve::kType;
  static int count() noexcept { return ve::count(); }
  static c10::DeviceIndex current() noexcept { return ve::current(); }
  static void set_current(c10::DeviceIndex index) { ve::set_current(index); }
  static void set_current_unchecked(c10::DeviceIndex index) noexcept {
    ve::set_current_unchecked(index);
  }
  static c10::DeviceIndex platform_index(c10::DeviceIndex index) {
    return ve::platform_index(index);
  }
  static c10::DeviceIndex index_of(int index) { return ve::index_of(index); }
};

}  // namespace

void attach_guard() { c10::impl::registerDeviceGuard(kType, new DeviceGuard<Slot>); }

}  // namespace graft::binding::ve
