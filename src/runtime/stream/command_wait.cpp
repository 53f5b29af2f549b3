// src/runtime/stream/command_wait.cpp: how a stream waits for its commands.
#include "runtime/stream/command_wait.h"

#include <algorithm>
#include <chrono>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/op_trace.h"
#include "runtime/driver/open_device.h"
#include "runtime/wait/pending_ops.h"

namespace graft {

CommandWait::CommandWait(OpenDevice& device, const graft_stream& stream, PendingOps& ops)
    : device_(device), table_(device.driver().table()), stream_(stream), ops_(ops) {}

graft_status CommandWait::slice(uint64_t ns) {
  if (table_.stream_synchronize_within != nullptr) {
    return Driver::call_locked(table_.stream_synchronize_within, stream_, ns);
  }
  const Patience patience({}, std::chrono::nanoseconds(std::max<uint64_t>(ns, 1)));
  if (table_.stream_query != nullptr) {
    return patience.poll([&] { return Driver::call_locked(table_.stream_query, stream_); });
  }
  if (mark_idle() == GRAFT_OK) return patience.poll([&] { return ask_mark(); });
  return Driver::call_locked(table_.stream_synchronize, stream_);  // the one way that is left
}

// Nothing is given meanwhile, so the mark stands behind every command.
graft_status CommandWait::mark_idle() {
  try {
    if (idle_mark_ == nullptr) idle_mark_ = std::make_unique<EventHandle>(device_, false);
  } catch (const Error& error) {
    return error.status();
  }
  return Driver::call_locked(table_.event_record, idle_mark_->get(), stream_);
}

graft_status CommandWait::ask_mark() {
  const graft_status status = Driver::call_locked(table_.event_query, idle_mark_->get());
  return status == GRAFT_OK ? Driver::call_locked(table_.stream_synchronize, stream_) : status;
}

graft_status CommandWait::query() {
  graft_status status;
  if (table_.stream_query != nullptr) {
    status = Driver::call_locked(table_.stream_query, stream_);
  } else {
    status = mark_idle();
    if (status == GRAFT_OK) status = ask_mark();
  }
  if (status != GRAFT_BUSY) all_done();
  return status;
}

void CommandWait::all_done() {
  ops_.done(ops_.added());
  if (given_up()) given_up_.store(false, std::memory_order_relaxed);
}

graft_status CommandWait::wait(std::unique_lock<std::mutex>& lock, Patience* patience) {
  const graft_status status =
      slice(patience != nullptr ? patience->slice_ns() : Patience::first_slice_ns());
  if (status != GRAFT_BUSY) {
    all_done();
    return status;
  }
  try {
    if (patience != nullptr) return wait_for_mark(lock, *patience);
    Patience own(Patience::kFirst);
    return wait_for_mark(lock, own);
  } catch (...) {
    give_up();
    throw;
  }
}

// For a mark behind the commands so far, so that commands of other threads do not prolong the wait.
graft_status CommandWait::wait_for_mark(std::unique_lock<std::mutex>& lock, Patience& patience) {
  const EventHandle mark(device_, false);
  graft_status status = Driver::call_locked(table_.event_record, mark.get(), stream_);
  if (status != GRAFT_OK) return status;
  const uint64_t commands = ops_.added();
  lock.unlock();
  do {
    if (!patience.lasts()) {
      const std::lock_guard held(*lock.mutex());
      throw too_long(commands);
    }
    status = wait_for_event(table_, mark.get(), patience);
  } while (status == GRAFT_BUSY);
  lock.lock();
  if (stream_ == nullptr) throw device_.unusable_error();
  if (status == GRAFT_OK) status = error_of_passed(commands);
  if (status == GRAFT_OK && ops_.added() == commands) {  // the mark itself is a command, too
    status = slice(Patience::first_slice_ns());
    if (status == GRAFT_BUSY) status = GRAFT_OK;
  }
  ops_.done(commands);
  if (given_up() && ops_.added() == commands) given_up_.store(false, std::memory_order_relaxed);
  return status;
}

// The late error of commands that a passed mark stands behind, where the mark did not tell it.
graft_status CommandWait::error_of_passed(uint64_t commands) {
  if (table_.event_synchronize_within != nullptr || table_.event_synchronize != nullptr) {
    return GRAFT_OK;
  }
  if (table_.stream_query != nullptr) {
    const graft_status status = Driver::call_locked(table_.stream_query, stream_);
    return status == GRAFT_BUSY ? GRAFT_OK : status;  // later commands: the next wait tells it
  }
  if (ops_.added() != commands) return GRAFT_OK;
  return Driver::call_locked(table_.stream_synchronize, stream_);
}

Error CommandWait::too_long(uint64_t commands) const {
  return graft::too_long(ops_.text(commands), device_.label(),
                         op_trace_note(ops_.oldest(commands)));
}

}  // namespace graft
