// src/runtime/stream/event.cpp: a mark in a stream that others can wait for.
#include "runtime/stream/event.h"

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/recording.h"
#include "runtime/stream/stream.h"

namespace graft {

Event::Event(OpenDevice& device, bool timed)
    : device_(device), handle_((device.refuse_unusable(), device), timed), timed_(timed) {}

Event::~Event() = default;

void Event::record(Stream& stream) {
  if (&stream.device() != &device_) {
    if (device_.lost()) throw device_.unusable_error();
    throw Error(GRAFT_INVALID_ARGUMENT,
                "An event of " + device_.name() + " cannot be recorded on a stream of " +
                    stream.device().name() + ": make the event on that device.");
  }
  const std::shared_ptr<Recording> recording = stream.recording();
  const bool recorded = recording != nullptr;
  if (recorded || in_recording_.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    recording_ = recording;
    in_recording_.store(recorded, std::memory_order_release);
  }
  if (!recorded) commands_.store(stream.mark(handle_.get()), std::memory_order_relaxed);
  stream_.store(recorded ? nullptr : &stream, std::memory_order_release);
}

std::shared_ptr<Recording> Event::recording() const {
  if (!in_recording_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return recording_.lock();
}

bool Event::query() {
  if (!recorded()) return true;
  device_.refuse_unusable();
  const graft_status status = Driver::call(device_.driver().table().event_query, handle_.get());
  if (status == GRAFT_BUSY) return false;
  device_.check(status, "event_query");
  return true;
}

graft_status Event::wait(Stream& stream) {
  const auto& table = device_.driver().table();
  const uint64_t commands = commands_.load(std::memory_order_relaxed);
  graft_status status = GRAFT_BUSY;
  if (table.event_synchronize_within != nullptr) {  // most waits need no clock
    status =
        Driver::call(table.event_synchronize_within, handle_.get(), Patience::first_slice_ns());
  } else {
    status = wait_for_event(table, handle_.get(), Patience());
  }
  try {
    for (Patience patience(Patience::kFirst); status == GRAFT_BUSY;) {
      if (!patience.lasts()) throw stream.too_long(commands);
      status = wait_for_event(table, handle_.get(), patience);
    }
  } catch (...) {
    stream.give_up();
    throw;
  }
  stream.passed(commands);
  return status;
}

void Event::synchronize() {
  if (in_recording_.load(std::memory_order_acquire)) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "This event was recorded inside a graph capture, so the host cannot wait for it: "
                "record an event after the replay.");
  }
  Stream* stream = this->stream();
  if (stream == nullptr) return;
  device_.refuse_unusable();
  const TracedCall traced(*stream, current_tag(), {TracedKind::kWait});
  const graft_status status = wait(*stream);
  if (status != GRAFT_OK) stream->throw_late(status);
  stream->concerns().ask();
}

bool Event::settle() noexcept {
  Stream* stream = this->stream();
  if (stream == nullptr || forked_child() || device_.lost()) return true;
  if (!device_.usable()) return false;
  try {
    const graft_status status = wait(*stream);
    if (status != GRAFT_OK) stream->keep_late(status);
    return true;
  } catch (const Error&) {  // GRAFT_TIMEOUT: who waits next is told
  } catch (...) {
    postpone_interrupt(std::current_exception());
  }
  return device_.lost();
}

int64_t Event::elapsed_ns(Event& end) {
  const auto& table = device_.driver().table();
  if (&device_ != &end.device_) {
    throw Error(GRAFT_INVALID_ARGUMENT, "elapsed_time got events of " + device_.name() + " and " +
                                            end.device_.name() + ": give events of one device.");
  }
  if (table.event_elapsed == nullptr) {
    throw Error(GRAFT_UNSUPPORTED,
                device_.label() + " does not time events: its driver lacks event_elapsed.");
  }
  if (!timed_ || !end.timed_) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "Both events must be made with timing enabled (enable_timing=True).");
  }
  if (!recorded() || !end.recorded()) {
    throw Error(GRAFT_INVALID_ARGUMENT, "Both events must be recorded before their time is asked.");
  }
  device_.refuse_unusable();
  int64_t elapsed = 0;
  const graft_status status =
      Driver::call(table.event_elapsed, handle_.get(), end.handle_.get(), &elapsed);
  if (status == GRAFT_BUSY) {
    throw Error(GRAFT_BUSY,
                "Both events must be completed before their time is asked: synchronize "
                "the second one first.");
  }
  device_.check(status, "event_elapsed");
  return elapsed;
}

}  // namespace graft
