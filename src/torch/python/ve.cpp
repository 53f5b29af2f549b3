// src/torch/python/ve.cpp: the slot for Python, as the module _C.ve.

#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/python/python.h"
#include "torch/ve/attach.h"
#include "torch/ve/generator.h"
#include "torch/ve/slot.h"

namespace graft::binding {
namespace {

Stream& stream_of(int64_t index) {
  return current_stream(ve::platform_index(static_cast<c10::DeviceIndex>(index)));
}

}  // namespace

void bind_ve(pybind11::module& module) {
  pybind11::module slot = module.def_submodule("ve", "Devices of torch.device('ve').");
  define(slot, "taken", &ve::taken);
  define(slot, "attach", &ve::attach);
  define(slot, "device_count", [] { return ve::count(); });
  define(slot, "current_device", []() -> int { return ve::current(); });
  define(slot, "set_device", [](int64_t index) {
    if (index >= 0) ve::check(index);
    ve::set_current(static_cast<c10::DeviceIndex>(index));
  });
  define(slot, "exchange_device", [](int64_t index) -> int {
    const int before = ve::current();
    if (index >= 0) ve::check(index);
    ve::set_current(static_cast<c10::DeviceIndex>(index));
    return before;
  });
  // The index of the device of ours that carries a device of the slot.
  define(slot, "inner_index", [](int64_t index) -> int {
    return ve::platform_index(static_cast<c10::DeviceIndex>(index));
  });
  // The other way; -1 for a device that the slot has not or that is not open.
  define(slot, "index_of", [](int64_t index) -> int {
    check_index(index);
    return ve::index_of(static_cast<int>(index));
  });
  // Makes a device of ours current again, also one that is not there.
  define(slot, "restore_inner",
         [](int64_t index) { set_current_device_unchecked(static_cast<c10::DeviceIndex>(index)); });
  define(slot, "default_generator",
         [](int64_t index) { return ve::default_generator(static_cast<c10::DeviceIndex>(index)); });
  define(slot, "new_generator",
         [](int64_t index) { return ve::new_generator(static_cast<c10::DeviceIndex>(index)); });
  define(slot, "current_stream_id", [](int64_t index) { return stream_of(index).id(); });
  define(slot, "set_stream", [](int64_t stream_id, int64_t index) {
    const c10::DeviceIndex inner = ve::platform_index(static_cast<c10::DeviceIndex>(index));
    exchange_stream(platform().device(inner).stream(stream_id));
  });
}

}  // namespace graft::binding
