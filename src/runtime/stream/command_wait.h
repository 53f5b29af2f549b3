// src/runtime/stream/command_wait.h: how a stream waits for its commands.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "graft/driver.h"
#include "runtime/driver/error.h"
#include "runtime/stream/event_handle.h"

namespace graft {

class OpenDevice;
class Patience;
class PendingOps;

// By the first of the driver's slots that can: a bounded wait, a query, a mark that is asked, a
// wait without a bound. Its stream's lock guards it, but for given_up and give_up.
class CommandWait {
 public:
  // stream: the driver's, null once the stream is closed. ops: the commands that it was given.
  CommandWait(OpenDevice& device, const graft_stream& stream, PendingOps& ops);

  // Waits until the commands so far are done, and returns their status. lock is the stream's, held:
  // it is given up between slices, since who wants it may hold Python's lock, which an interrupt
  // check takes, and is held again at the end. Throws without it where the wait ends early: what
  // the interrupt check throws, or Error TIMEOUT.
  graft_status wait(std::unique_lock<std::mutex>& lock, Patience* patience = nullptr);

  // One slice of so many nanoseconds, under the lock: what most waits take. BUSY in vain.
  graft_status slice(uint64_t ns);

  // BUSY, or the status of the commands so far. Never blocks.
  graft_status query();

  // Whether the last wait ended early; the commands may be done by now.
  bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }

  // The Error of a wait for the first so many commands that took too long.
  Error too_long(uint64_t commands) const;

  // Gives what it has of the driver back; forget, in a forked child, does not call the driver.
  void close() noexcept { idle_mark_.reset(); }
  void forget() noexcept { static_cast<void>(idle_mark_.release()); }

 private:
  graft_status wait_for_mark(std::unique_lock<std::mutex>& lock, Patience& patience);
  graft_status error_of_passed(uint64_t commands);
  graft_status mark_idle();
  graft_status ask_mark();
  void all_done();

  OpenDevice& device_;
  const graft_driver_table& table_;
  const graft_stream& stream_;
  PendingOps& ops_;
  std::unique_ptr<EventHandle> idle_mark_;  // for drivers without stream_query
  std::atomic<bool> given_up_{false};
};

}  // namespace graft
