// src/runtime/stream/waits.cpp: how a stream waits for its commands.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/op_trace.h"
#include "runtime/stream/device.h"
#include "runtime/stream/stream.h"

namespace graft {

// One slice, under the lock: what most waits take.
graft_status Stream::first_slice(uint64_t ns) {
  if (table_.stream_synchronize_within != nullptr) {
    return Driver::call_locked(table_.stream_synchronize_within, handle_, ns);
  }
  const Patience patience({}, std::chrono::nanoseconds(std::max<uint64_t>(ns, 1)));
  if (table_.stream_query != nullptr) {
    return patience.poll([&] { return Driver::call_locked(table_.stream_query, handle_); });
  }
  if (mark_idle() == GRAFT_OK) return patience.poll([&] { return ask_mark(); });
  return Driver::call_locked(table_.stream_synchronize, handle_);  // the one way that is left
}

// Nothing is enqueued meanwhile, so the mark stands behind every command.
graft_status Stream::mark_idle() {
  try {
    if (idle_mark_ == nullptr) idle_mark_ = std::make_unique<EventHandle>(device_, false);
  } catch (const Error& error) {
    return error.status();
  }
  return Driver::call_locked(table_.event_record, idle_mark_->get(), handle_);
}

graft_status Stream::ask_mark() {
  const graft_status status = Driver::call_locked(table_.event_query, idle_mark_->get());
  return status == GRAFT_OK ? Driver::call_locked(table_.stream_synchronize, handle_) : status;
}

graft_status Stream::ask_idle() {
  if (table_.stream_query != nullptr) return Driver::call_locked(table_.stream_query, handle_);
  const graft_status status = mark_idle();
  return status == GRAFT_OK ? ask_mark() : status;
}

// The lock is given up between slices: who wants it may hold Python's lock, which an interrupt
// check takes. Throws, without the lock, where the wait ends early.
graft_status Stream::wait_here(std::unique_lock<std::mutex>& lock, Patience* patience) {
  const graft_status status =
      first_slice(patience != nullptr ? patience->slice_ns() : Patience::first_slice_ns());
  if (status != GRAFT_BUSY) {
    ops_.done(ops_.added());
    if (given_up()) given_up_.store(false, std::memory_order_relaxed);
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
graft_status Stream::wait_for_mark(std::unique_lock<std::mutex>& lock, Patience& patience) {
  const EventHandle mark(device_, false);
  graft_status status = Driver::call_locked(table_.event_record, mark.get(), handle_);
  if (status != GRAFT_OK) return status;
  const uint64_t commands = ops_.added();
  lock.unlock();
  do {
    if (!patience.lasts()) throw too_long(commands);
    status = wait_for_event(table_, mark.get(), patience);
  } while (status == GRAFT_BUSY);
  lock.lock();
  if (handle_ == nullptr) throw device_.unusable_error();
  if (status == GRAFT_OK) status = error_of_passed(commands);
  if (status == GRAFT_OK && ops_.added() == commands) {  // the mark itself is a command, too
    status = first_slice(Patience::first_slice_ns());
    if (status == GRAFT_BUSY) status = GRAFT_OK;
  }
  ops_.done(commands);
  if (given_up() && ops_.added() == commands) given_up_.store(false, std::memory_order_relaxed);
  return status;
}

// The late error of commands that a passed mark stands behind, where the mark did not tell it.
graft_status Stream::error_of_passed(uint64_t commands) {
  if (table_.event_synchronize_within != nullptr || table_.event_synchronize != nullptr) {
    return GRAFT_OK;
  }
  if (table_.stream_query != nullptr) {
    const graft_status status = Driver::call_locked(table_.stream_query, handle_);
    return status == GRAFT_BUSY ? GRAFT_OK : status;  // later commands: the next wait tells it
  }
  if (ops_.added() != commands) return GRAFT_OK;
  return Driver::call_locked(table_.stream_synchronize, handle_);
}

Error Stream::too_long(uint64_t commands) const {
  std::string text, trace;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    text = ops_.text(commands);
    trace = op_trace_note(ops_.oldest(commands));
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", std::chrono::duration<double>(wait_limit()).count());
  return {GRAFT_TIMEOUT,
          text + " did not end within GRAFT_TIMEOUT=" + seconds + " seconds on " + device_.label() +
              ". The command still runs and keeps its memory; other streams and devices can be "
              "used. Raise GRAFT_TIMEOUT if the command needs longer, else restart the process." +
              trace};
}

void Stream::wait_and_finish() {
  const TracedCall traced(*this, current_tag(), {TracedKind::kWait});
  std::unique_lock<std::mutex> lock(mutex_);
  refuse_unusable();
  finish_wait(lock, wait_here(lock));
}

void Stream::synchronize() {
  refuse_recording("waiting for the device");
  wait_and_finish();
}

void Stream::read(void* to, graft_address from, uint64_t bytes) {
  refuse_recording("reading a number of the device");
  // Where the bytes arrive: a copy whose wait ended early may still write there.
  constexpr uint64_t kSmall = 64;
  thread_local std::unique_ptr<std::byte[]> small;
  std::unique_ptr<std::byte[]> landing;
  if (bytes <= kSmall) landing.swap(small);
  if (landing == nullptr) landing.reset(new std::byte[std::max(bytes, kSmall)]);
  const auto host = reinterpret_cast<uintptr_t>(landing.get());
  try {
    if (command_trace_state::on.load(std::memory_order_relaxed)) [[unlikely]] {
      copy(host, from, bytes, GRAFT_DEVICE_TO_HOST);
      wait_and_finish();
    } else {  // the same under one lock
      std::unique_lock<std::mutex> lock(mutex_);
      refuse_unusable();
      if (kept_) throw_kept(lock);
      const uint32_t tag = current_tag();
      const graft_status status = Driver::call_locked(table_.copy, handle_, host, from, bytes,
                                                      uint32_t{GRAFT_DEVICE_TO_HOST}, tag);
      if (status != GRAFT_OK) refused(lock, status, "copy");
      ops_.add(tag);
      count(counts_.copies, 1);
      count(counts_.copied_bytes, bytes);
      finish_wait(lock, wait_here(lock));
    }
  } catch (...) {
    if (given_up()) keep_alive(std::shared_ptr<const std::byte[]>(std::move(landing)));
    throw;
  }
  std::memcpy(to, landing.get(), bytes);
  if (bytes <= kSmall) landing.swap(small);
}

void Stream::settle_or_throw() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (const graft_status status = wait_here(lock); status != GRAFT_OK) keep(status);
  lock.unlock();
  let_go_done();
}

bool Stream::settle() noexcept {
  if (forked_child() || device_.lost()) return true;
  if (!device_.usable()) return false;
  try {
    settle_or_throw();
    return true;
  } catch (const Error&) {  // GRAFT_TIMEOUT: who waits next is told
  } catch (...) {
    postpone_interrupt(std::current_exception());
  }
  return device_.lost();
}

bool Stream::drain(Patience& patience) {
  while (!mutex_.try_lock()) {
    if (!patience.lasts()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
  if (given_up()) return first_slice(0) != GRAFT_BUSY;
  try {
    wait_here(lock, &patience);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Stream::keep_alive(std::shared_ptr<const void> memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_alive_.emplace_back(ops_.added(), std::move(memory));
  keeps_any_.store(true, std::memory_order_relaxed);
}

// Destroys what it lets go without the lock: a tensor's memory may be Python's.
void Stream::let_go_done() noexcept {
  if (__builtin_expect(!keeps_any_.load(std::memory_order_relaxed), 1)) return;
  decltype(kept_alive_) done;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto used = [&](const auto& one) { return one.first > ops_.done(); };
  const auto rest = std::partition(kept_alive_.begin(), kept_alive_.end(), used);
  done.assign(std::move_iterator(rest), std::move_iterator(kept_alive_.end()));
  kept_alive_.erase(rest, kept_alive_.end());
  keeps_any_.store(!kept_alive_.empty(), std::memory_order_relaxed);
}

bool Stream::query() {
  refuse_recording("asking whether the device is done");
  std::unique_lock<std::mutex> lock(mutex_);
  refuse_unusable();
  if (kept_) throw_kept(lock);
  const graft_status status = ask_idle();
  if (status == GRAFT_BUSY) return false;
  ops_.done(ops_.added());
  if (given_up()) given_up_.store(false, std::memory_order_relaxed);
  finish_wait(lock, status);
  return true;
}

}  // namespace graft
