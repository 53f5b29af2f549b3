// src/torch/distributed/reducer_timer.cpp: the times of DistributedDataParallel's statistics, on
// the device.
#include <array>
#include <memory>

#include "runtime/driver/error.h"
#include "runtime/driver/open_device.h"
#include "runtime/platform/platform.h"
#include "runtime/stream/event.h"
#include "torch/device/current.h"
#include "torch/device/errors.h"
#include "torch/device/type.h"
#include "torch/version/c10d.h"

namespace graft::binding {
namespace {

class ReducerTimer final : public c10d::Timer {
 public:
  explicit ReducerTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event);
    translate([&] {
      Stream& stream = current_stream(device_.index());
      auto& mark = marks_.at(static_cast<size_t>(event));
      if (!mark) mark = std::make_unique<graft::Event>(stream.device(), true);
      mark->record(stream);
    });
  }

  // Empty where the driver has no times.
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto& first = marks_.at(static_cast<size_t>(start));
    const auto& last = marks_.at(static_cast<size_t>(end));
    if (!first || !last) return std::nullopt;
    first->settle();
    last->settle();
    try {
      const int64_t taken = first->elapsed_ns(*last);
      return taken < 0 ? std::nullopt : std::optional(taken);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

 private:
  const c10::Device device_;
  std::array<std::unique_ptr<graft::Event>, 5> marks_;
};

}  // namespace
}  // namespace graft::binding

namespace c10d {

C10_REGISTER_TYPED_CLASS(TimerRegistry, graft::binding::kDeviceType, graft::binding::ReducerTimer)

}  // namespace c10d
