// src/runtime/platform/device_reset.cpp: puts a new device in the place of a lost one.
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/driver/device_name.h"
#include "runtime/driver/slot_gate.h"
#include "runtime/platform/platform.h"

namespace graft {
namespace {

// How long a reset waits for threads that are inside a driver.
constexpr std::chrono::seconds kResetLimit(1);

// The lost device's handles are gone then, whatever comes of it.
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

}  // namespace

Device& Platform::reset(int index) {
  refuse_forked_child();
  DeviceNumbers::Entry entry;
  {
    std::lock_guard lock(mutex_);
    const DeviceNumbers::Entry* const found = numbers_.find(index);
    if (found == nullptr) refuse_index(index);
    entry = *found;
  }
  std::lock_guard<std::mutex> lock(entry->opening);
  if (entry->device == nullptr || !entry->device->lost()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                device_label(index) + " is not lost: only a lost device can be reset.");
  }
  std::unique_ptr<Device> fresh = reopened(*entry->device);
  open_[index].store(fresh.get(), std::memory_order_release);
  entry->device->replace();
  std::swap(entry->device, fresh);
  std::lock_guard all(mutex_);
  replaced_.push_back(std::move(fresh));
  return *entry->device;
}

}  // namespace graft
