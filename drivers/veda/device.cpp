// drivers/veda/device.cpp: one opened Vector Engine.
#include "device.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "context.h"
#include "graft/driver_slot.h"
#include "settings.h"

void graft_device_s::lose(const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (!reason_.empty()) return;
  reason_ = reason;
  lost_.store(true, std::memory_order_release);
}

std::string graft_device_s::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

namespace graft::veda {
namespace {

constexpr size_t kScratchBytes = 8;

graft_status check_ordinal(uint32_t ordinal) {
  const Catalog& known = catalog();
  if (known.status != GRAFT_OK) return fail(known.status, known.problem);
  if (ordinal < known.devices.size()) return GRAFT_OK;
  return fail(GRAFT_NOT_FOUND, "Vector Engine " + std::to_string(ordinal) + " of " +
                                   std::to_string(known.devices.size()) +
                                   " does not exist: see VEDA_VISIBLE_DEVICES and VE_NODE_NUMBER");
}

graft_status check_forked() {
  if (!forked()) return GRAFT_OK;
  return fail(GRAFT_DEVICE_LOST,
              "this process was forked after VEDA was loaded: use the start method 'spawn'");
}

// The mode is the context's for all of its life.
Called make_context(graft_device device) {
  const VEDAdevice number = device->listed.device;
  uint32_t flags = 0;
  int active = 0;
  Called called = GRAFT_VEDA_CALL(DevicePrimaryCtxGetState, number, &flags, &active);
  device->is_borrowed = called.ok() && active != 0;
  if (!called.ok()) return called;
  if (settings().mode == "omp") {
    return GRAFT_VEDA_CALL(DevicePrimaryCtxRetain, &device->context, number);
  }
  called = GRAFT_VEDA_CALL(CtxCreate, &device->context, VEDA_CONTEXT_MODE_SCALAR, number);
  VEDAcontext popped = nullptr;
  return called.ok() ? GRAFT_VEDA_CALL(CtxPopCurrent, &popped) : called;
}

Called prepare(graft_device device) {
  const Current current(device->context);
  if (!current.called().ok()) return current.called();
  Called called = device->lanes.open(device);
  if (!called.ok()) return called;
  // One allocation before Graft's first, also because a context that was reset gives index 0 once.
  for (int i = 0; i < 2 && VEDA_GET_IDX(device->scratch) == 0; ++i) {
    called = GRAFT_VEDA_CALL(MemAlloc, &device->scratch, kScratchBytes);
    if (!called.ok()) return called;
  }
  void* raw = nullptr;
  called = GRAFT_VEDA_CALL(MemPtr, &raw, device->scratch);
  if (called.ok() && raw == nullptr) called.result = VEDA_ERROR_OUT_OF_MEMORY;
  return called;
}

void close(graft_device device) {
  if (device->context != nullptr && !device->is_borrowed) veda().CtxDestroy(device->context);
  device->lanes.clear();
  leave();
}

}  // namespace

graft_status check_device(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no device given");
  if (graft_status status = check_forked(); status != GRAFT_OK) return status;
  if (!device->is_lost()) return GRAFT_OK;
  return fail(GRAFT_DEVICE_LOST, std::string("the device ") + device->listed.properties.name +
                                     " is lost (" + device->reason() + "): restart the process");
}

graft_status DeviceSlots::device_count(uint32_t* out_count) {
  if (out_count == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_count: no out pointer given");
  const Catalog& known = catalog();
  if (known.status != GRAFT_OK) return fail(known.status, known.problem);
  *out_count = uint32_t(known.devices.size());
  return known.devices.empty() ? fail(GRAFT_OK, known.problem) : GRAFT_OK;
}

graft_status DeviceSlots::device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (properties == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "device_properties: no out pointer given");
  }
  if (graft_status status = check_ordinal(ordinal); status != GRAFT_OK) return status;
  graft_device_properties mine = catalog().devices[ordinal].properties;
  mine.struct_size = properties->struct_size;
  std::memcpy(properties, &mine, std::min<size_t>(properties->struct_size, sizeof mine));
  return GRAFT_OK;
}

graft_status DeviceSlots::device_open(uint32_t ordinal, graft_device* out_device) {
  if (out_device == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_open: no out pointer given");
  if (graft_status status = check_forked(); status != GRAFT_OK) return status;
  if (graft_status status = check_ordinal(ordinal); status != GRAFT_OK) return status;
  auto device = std::make_unique<graft_device_s>(catalog().devices[ordinal]);
  Called called = initialise();
  if (called.ok()) {
    enter();
    called = make_context(device.get());
    if (called.ok()) called = prepare(device.get());
    if (called.ok()) {
      *out_device = device.release();
      return GRAFT_OK;
    }
    close(device.get());
  }
  const bool taken = called.result == VEDA_ERROR_CANNOT_CREATE_CONTEXT;
  return fail(
      called.status(GRAFT_INTERNAL),
      called.text() + ": opening " + device->listed.properties.name +
          (taken ? ": the device has a context of another mode; set GRAFT_VE_MODE=omp" : ""));
}

graft_status DeviceSlots::device_close(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "device_close: no device given");
  if (forked()) return GRAFT_OK;
  if (device->is_borrowed && !device->is_lost()) {
    const Current current(device->context);
    if (current.called().ok()) veda().MemFree(device->scratch);
  }
  close(device);
  delete device;
  return GRAFT_OK;
}

}  // namespace graft::veda
