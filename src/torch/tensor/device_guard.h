// src/torch/tensor/device_guard.h: what PyTorch asks of every device type: devices, streams,
// events.
#pragma once

#include <utility>

#include "runtime/driver/device_properties.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/event.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"
#include "torch/version/dispatch.h"

namespace graft::binding {

// The guard of one device type. Slot says which one, all static:
//   kType                              the device type
//   int count() noexcept               its devices; opens none
//   c10::DeviceIndex current()         the calling thread's current device
//   void set_current(index)            throws RuntimeError out of range; below 0 changes nothing
//   void set_current_unchecked(index)  the same without a check
//   c10::DeviceIndex platform_index(index)  the platform's index of a device, below 0 the current
//                                      one; may throw out of range, and need not
//   c10::DeviceIndex index_of(int)     from the platform's index back
// Streams and events are the runtime's. A thread has one current stream per device of the platform,
// whatever names the device has.
template <class Slot>
class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return Slot::kType; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {Slot::kType, Slot::current()}; }
  void setDevice(c10::Device device) const override { Slot::set_current(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    Slot::set_current_unchecked(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(Slot::count());
  }
  // By what the driver says, without opening the device.
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    const c10::DeviceIndex index = Slot::platform_index(device.index());
    check_index(index);
    const uint32_t computed = computed_dtypes(platform().description(index).properties);
    c10::DeviceCapability capability;
    auto& bits = capability.capability_data.capability_bits;
    bits = 0;
#define GRAFT_ADD(name, value, bytes, text) \
  if ((computed >> GRAFT_##name & 1) != 0) bits |= 1ull << static_cast<int>(to_torch(GRAFT_##name));
    GRAFT_DTYPES(GRAFT_ADD)
#undef GRAFT_ADD
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override {
    return translate([&] { return torch_stream(current_of(device.index())); });
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return translate([&] { return torch_stream(open(device.index()).default_stream()); });
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high) const override {
    return translate([&] {
      Device& opened = open(device.index());
      const int priority = high ? opened.properties().priority_highest : 0;
      return torch_stream(opened.stream_from_pool(priority));
    });
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return translate([&] { return torch_stream(open(device.index()).stream_from_pool(priority)); });
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return translate([&] { return torch_stream(exchange_stream(runtime_stream(stream))); });
  }
  // Throws RuntimeError if the driver offers none.
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    uint64_t handle = 0;
    const bool offered = translate([&] { return runtime_stream(stream).native_handle(&handle); });
    TORCH_CHECK(offered, "the driver of ", stream.device(), " offers no native stream handle");
    return reinterpret_cast<void*>(handle);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return translate([&] { return runtime_stream(stream).query(); });
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return translate([&] { return runtime_stream(stream).recording() != nullptr; });
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    translate([&] { runtime_stream(stream).synchronize(); });
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    translate([&] { open(index).synchronize(); });
  }

  // Streams and events may be of any thread; an event belongs to the stream that marked it last.
  // Makes the event at its first mark: PyTorch gives null for one that was never recorded.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    translate([&] {
      Stream& runtime = runtime_stream(stream);
      if (*event != nullptr && event_at(*event).device().lost()) {  // of before a reset
        delete static_cast<Event*>(std::exchange(*event, nullptr));
      }
      if (*event == nullptr) {
        *event = new Event(runtime.device(), flag == c10::EventFlag::BACKEND_DEFAULT);
      }
      event_at(*event).record(runtime);
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    translate([&] { runtime_stream(stream).wait(event_at(event)); });
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || translate([&] { return event_at(event).query(); });
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    translate([&] { event_at(event).synchronize(); });
  }
  // In milliseconds, between the marks of two events that were made with timing.
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    constexpr double kNanosecondsPerMillisecond = 1e6;
    return translate([&] {
      return static_cast<double>(event_at(start).elapsed_ns(event_at(end))) /
             kNanosecondsPerMillisecond;
    });
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }

  // The memory is not given out again before the stream's work of now is done.
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    translate([&] { record_stream(data, runtime_stream(stream)); });
  }

 private:
  static Device& open(c10::DeviceIndex index) { return device_at(Slot::platform_index(index)); }
  static Stream& current_of(c10::DeviceIndex index) {
    return current_stream(Slot::platform_index(index));
  }
  static Stream& runtime_stream(const c10::Stream& stream) {
    return platform().device(Slot::platform_index(stream.device_index())).stream(stream.id());
  }
  static c10::Stream torch_stream(const Stream& stream) {
    const c10::Device device(Slot::kType, Slot::index_of(stream.device().index()));
    return c10::Stream(c10::Stream::UNSAFE, device, stream.id());
  }
  static Event& event_at(void* event) {
    TORCH_CHECK(event != nullptr, "the event was never recorded");
    return *static_cast<Event*>(event);
  }
};

}  // namespace graft::binding
