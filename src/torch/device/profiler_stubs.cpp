// src/torch/device/profiler_stubs.cpp: timed events around operators, for profilers without
// Kineto.
#include "torch/device/profiler_stubs.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/ApproximateClock.h>

#include "runtime/driver/error.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/device/type.h"
#include "torch/version/profiler.h"

namespace graft::binding {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

// Null where the device cannot tell times, and while the stream records a graph: an operator that
// was only recorded took none.
std::shared_ptr<Event> timed_event(Stream& stream) {
  if (stream.recording() != nullptr) return nullptr;
  try {
    auto event = std::make_shared<Event>(stream.device(), true);
    event->record(stream);
    return event;
  } catch (const Error& error) {
    if (error.status() == GRAFT_UNSUPPORTED) return nullptr;
    throw;
  }
}

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    translate([&] {
      Stream& stream = current_stream(current_device());
      if (device != nullptr) *device = static_cast<c10::DeviceIndex>(current_device());
      *event = timed_event(stream);
      if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
    });
  }
  // Microseconds; 0 where they are not known, which tables leave out.
  float elapsed(const ProfilerVoidEventStub* start,
                const ProfilerVoidEventStub* end) const override {
    constexpr float kNanosecondsPerMicrosecond = 1e3F;
    auto* const from = static_cast<Event*>(start->get());
    auto* const to = static_cast<Event*>(end->get());
    if (from == nullptr || to == nullptr || &from->device() != &to->device()) return 0;
    try {
      to->synchronize();
      return static_cast<float>(from->elapsed_ns(*to)) / kNanosecondsPerMicrosecond;
    } catch (const Error&) {
      return 0;
    }
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> op) const override {
    for (const Device* const device : platform().open_devices()) {
      const c10::DeviceGuard guard(device_of(static_cast<c10::DeviceIndex>(device->index())));
      op(device->index());
    }
  }
  void synchronize() const override {
    translate([] {
      for (Device* const device : platform().open_devices()) device->synchronize();
    });
  }
};

}  // namespace

void attach_profiler_stubs() {
  static Stubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
}

}  // namespace graft::binding
