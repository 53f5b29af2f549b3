// src/torch/ve/slot.h: the devices of torch.device("ve") and the devices of Graft that carry them.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

#include <atomic>

#include "torch/device/type.h"

// PyTorch has a second device type that nobody serves: VE. Its tensors here are faces of tensors of
// kDeviceType (device/type.h): outer tensors and storages are VE's, inner ones those of the device
// that carries them, over the same memory.
namespace graft::binding::ve {

inline constexpr c10::DeviceType kType = kSlotType;
inline constexpr c10::DispatchKey kKey = kSlotKey;
inline constexpr c10::DispatchKey kSparseKey = c10::DispatchKey::SparseVE;
inline constexpr c10::DispatchKey kSparseCompressedKey = c10::DispatchKey::SparseCsrVE;
inline constexpr c10::DispatchKey kQuantizedKey = c10::DispatchKey::QuantizedVE;

// The slot's devices, as GRAFT_VE_DEVICES lists them. The first call asks their drivers; none is
// opened. Never throws; warns once of each driver that was refused.
int count() noexcept;

// Throws RuntimeError for an index that is no device's, with the number of devices.
void check(int64_t index);

// The calling thread's current device of the slot; 0 at first.
c10::DeviceIndex current() noexcept;
void set_current_unchecked(c10::DeviceIndex index) noexcept;

// Throws RuntimeError out of range. An index below 0 changes nothing.
void set_current(c10::DeviceIndex index);

// index itself, or the current device's when it is below 0.
inline c10::DeviceIndex resolve(c10::DeviceIndex index) { return index < 0 ? current() : index; }

// Whether a device of the slot was used: before, no tensor is on one.
inline std::atomic<bool> any_used{false};
inline bool used() noexcept { return any_used.load(std::memory_order_relaxed); }

// The index that the platform has for the slot's device (below 0: the current one). Opens the
// device at its first use, so that it keeps this index. Throws RuntimeError.
c10::DeviceIndex platform_index(c10::DeviceIndex index);

// The other way. REQUIRES: platform_index gave this index.
c10::DeviceIndex index_of(int platform_index);

// The device behind a device of the slot, and back.
inline c10::Device inner(c10::Device outer) { return device_of(platform_index(outer.index())); }
inline c10::Device outer(c10::Device inner) { return {kType, index_of(inner.index())}; }

// The platform's index of a device of ours or of the slot.
inline c10::DeviceIndex carrier_index(c10::Device device) {
  return device.type() == kType ? platform_index(device.index()) : device.index();
}

}  // namespace graft::binding::ve
