// src/runtime/platform/device_reset.cpp: puts a new device in the place of a lost one.
#include "runtime/platform/device_reset.h"

#include <chrono>

#include "runtime/driver/error.h"
#include "runtime/driver/slot_gate.h"

namespace graft {
namespace {

// How long a reset waits for threads that are inside a driver.
constexpr std::chrono::seconds kResetLimit(1);

}  // namespace

std::unique_ptr<Device> reopened(Device& lost) {
  const auto slot = lost.driver().table().device_reset;
  if (slot == nullptr) {
    throw Error(
        GRAFT_UNSUPPORTED,
        lost.label() + " cannot be reset: its driver lacks device_reset. Restart the process.");
  }
  if (!SlotGate::pause(std::chrono::steady_clock::now() + kResetLimit)) {
    throw Error(GRAFT_BUSY, lost.label() +
                                " cannot be reset while another thread waits inside a "
                                "driver: end its work and try again.");
  }
  struct Opens {
    ~Opens() { SlotGate::open(); }
  } const opens;
  lost.close();
  const graft_status status = Driver::call(slot, lost.ordinal());
  if (status != GRAFT_OK) lost.driver().fail(status, "device_reset", lost.name(), {});
  auto fresh = std::make_unique<Device>(lost.driver(), lost.ordinal(), lost.index());
  for (const Stream* stream : lost.streams().all()) {
    if (fresh->streams().owns(stream->id())) {
      fresh->streams().make(stream->id(), stream->priority());
    }
  }
  return fresh;
}

}  // namespace graft
