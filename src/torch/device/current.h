// src/torch/device/current.h: the calling thread's current device and its current stream on each
// device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <atomic>

#include "runtime/driver/device_name.h"
#include "runtime/stream/stream.h"
#include "torch/device/type.h"

namespace graft {
class Device;
}

namespace graft::binding {

// Number of devices. Loads drivers at the first call, opens no device; warns once of each driver
// that was refused. Never throws.
int device_count() noexcept;

// Throws RuntimeError for an index that is no device's, with the number of devices.
void check_index(int64_t index);

// The device of the platform with that index, which is opened. Throws as check_index, and Error.
Device& device_at(int64_t index);

namespace detail {
// What is current for this thread. One object, so that a call looks it up once.
struct Current {
  c10::DeviceIndex device = 0;
  // Null where the thread never used the device, or not since it was reset. Another thread clears
  // them (forget_streams).
  std::atomic<Stream*> streams[kMostDevices] = {};
};
extern thread_local constinit Current current;
Stream& open_current_stream(c10::DeviceIndex index);
}  // namespace detail

// The thread's current device; 0 at first.
inline c10::DeviceIndex current_device() noexcept { return detail::current.device; }
void set_current_device_unchecked(c10::DeviceIndex index) noexcept;

// The current device; where no device is counted, the first of torch.device("ve"), if it has any.
c10::DeviceIndex usable_device();

// As above, but throws RuntimeError out of range, with the index and the number of devices. An
// index below 0 means the current device and changes nothing.
void set_current_device(c10::DeviceIndex index);

// index itself, or the current device's when it is below 0.
inline c10::DeviceIndex resolve(c10::DeviceIndex index) {
  return index < 0 ? current_device() : index;
}

// The runtime's stream behind PyTorch's current stream of that device. Opens the device at its
// first use. Throws Error, also in a child of a process that had used a device.
inline Stream& current_stream(c10::DeviceIndex index) {
  if (index >= 0 && index < kMostDevices) [[likely]] {
    Stream* const stream = detail::current.streams[index].load(std::memory_order_relaxed);
    if (stream != nullptr) [[likely]]
      return *stream;
  }
  return detail::open_current_stream(index);
}

// Between PyTorch's streams and the runtime's. REQUIRES of runtime_stream: stream is one of ours.
Stream& runtime_stream(const c10::Stream& stream);
c10::Stream torch_stream(const Stream& stream);

// The device's default stream becomes current for every thread. For a device that was reset.
void forget_streams(c10::DeviceIndex index);

// Makes stream current on its device for this thread; returns the one before.
Stream& exchange_stream(Stream& stream);

}  // namespace graft::binding
