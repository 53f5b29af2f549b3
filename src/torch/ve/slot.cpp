// src/torch/ve/slot.cpp: the devices of torch.device("ve") and the devices of Graft that carry
// them.
#include "torch/ve/slot.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>

#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/device/drivers.h"
#include "torch/device/errors.h"

namespace graft::binding::ve {
namespace {

thread_local constinit c10::DeviceIndex current_index = 0;

constexpr c10::DeviceIndex kUnknown = -1;

// Both ways between the numbers of devices that are open; such a device keeps both.
struct Known {
  std::array<std::atomic<c10::DeviceIndex>, kMostDevices> platform, slot;
  Known() {
    for (auto& index : platform) index.store(kUnknown, std::memory_order_relaxed);
    for (auto& index : slot) index.store(kUnknown, std::memory_order_relaxed);
  }
};

Known& known() {
  static auto* const known = new Known;
  return *known;
}

c10::DeviceIndex learn(c10::DeviceIndex index) {
  check(index);
  return translate([&] {
    const auto found = static_cast<c10::DeviceIndex>(platform().carried_index(index));
    platform().device(found);
    known().slot[static_cast<size_t>(found)].store(index, std::memory_order_release);
    known().platform[static_cast<size_t>(index)].store(found, std::memory_order_release);
    any_used.store(true, std::memory_order_relaxed);
    return found;
  });
}

}  // namespace

int count() noexcept {
  const int carried = platform().carried_count();
  warn_of_refusals();
  return carried;
}

void check(int64_t index) {
  const int carried = count();
  TORCH_CHECK(index >= 0 && index < carried, "there is no device ve:", index, ": ", carried,
              carried == 1 ? " device was" : " devices were", " found",
              carried == 0 ? " for the VE slot. Name a driver in GRAFT_VE_DEVICES; " : "; ",
              "`python -m torch_graft doctor` tells more.");
}

c10::DeviceIndex current() noexcept { return current_index; }

void set_current_unchecked(c10::DeviceIndex index) noexcept {
  if (index >= 0) current_index = index;
}

void set_current(c10::DeviceIndex index) {
  if (index < 0 || index == current_index) return;
  check(index);
  current_index = index;
}

c10::DeviceIndex platform_index(c10::DeviceIndex index) {
  index = resolve(index);
  if (index < kMostDevices) [[likely]] {
    const c10::DeviceIndex found =
        known().platform[static_cast<size_t>(index)].load(std::memory_order_acquire);
    if (found != kUnknown) [[likely]]
      return found;
  }
  return learn(index);
}

c10::DeviceIndex index_of(int platform_index) {
  return known().slot[static_cast<size_t>(platform_index)].load(std::memory_order_acquire);
}

}  // namespace graft::binding::ve
