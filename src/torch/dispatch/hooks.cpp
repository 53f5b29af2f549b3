// src/torch/dispatch/hooks.cpp: what PyTorch asks of an accelerator beyond the guard.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "runtime/driver/fork.h"
#include "runtime/memory/allocator.h"
#include "runtime/platform/platform.h"
#include "torch/device/attach.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/device/generator.h"
#include "torch/device/pinned.h"
#include "torch/tensor/storage.h"

namespace graft::binding {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return platform().open_device(resolve(index)) != nullptr;
  }
  void init() const override {
    translate([] {
      refuse_forked_child();
      check_index(usable_device());
    });
  }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(resolve(index));
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    index = resolve(index);
    check_index(index);
    return at::make_generator<GraftGenerator>(index);
  }

  at::Device getDeviceFromPtr(void* data) const override {
    for (Device* const device : platform().open_devices()) {
      if (device->allocator().find(reinterpret_cast<uint64_t>(data))) {
        return device_of(static_cast<c10::DeviceIndex>(device->index()));
      }
    }
    TORCH_CHECK(false, "address ", data, " is in no memory that Graft allocated");
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    translate([&] { resize_storage(*storage.unsafeGetStorageImpl(), bytes); });
  }
};

}  // namespace

void attach_hooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

void attach() {
  attach_guard();
  attach_memory();
  attach_graphs();
  attach_profiler();
  attach_pinned_memory();
  attach_hooks();
  attach_trace();
  attach_interrupts();
}

}  // namespace graft::binding
