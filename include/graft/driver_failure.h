// include/graft/driver_failure.h: the late error of a stream (driver.h, rule 3), for drivers
// written in C++; optional, all of it inline.
//
// Whoever runs the commands keeps what failed:
//
//   failure.set({GRAFT_LAUNCH_FAILED, tag, "the kernel add_n failed"});
//
// and stream_synchronize, stream_query and event_synchronize end with
//
//   return failure.take();
//
// which gives the status once and leaves the text for last_message. stream_error gives taken().
#ifndef GRAFT_DRIVER_FAILURE_H_
#define GRAFT_DRIVER_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "graft/driver_slot.h"

// Two drivers of one process must not share the code: each may be built with another release of
// this header.
#pragma GCC visibility push(hidden)

namespace graft {

// How a command failed. status OK: it did not, and the rest means nothing.
struct LateError {
  graft_status status = GRAFT_OK;
  uint32_t tag = 0;  // of the command
  std::string text;  // for the user: the command and the vendor's words
};

// Holds the first error until someone takes it, and counts those after it. Thread-safe.
class Failure {
 public:
  // Keeps error, or counts it if an older one is still waiting.
  void set(const LateError& error) {
    std::lock_guard lock(mutex_);
    if (any_.load(std::memory_order_relaxed)) {
      ++more_;
      return;
    }
    waiting_ = error;
    any_.store(true, std::memory_order_release);
  }

  // The waiting error, which stays; status OK if there is none.
  LateError peek() const {
    if (!any()) return {};
    std::lock_guard lock(mutex_);
    return any_.load(std::memory_order_relaxed) ? waiting_ : LateError{};
  }

  // Gives the waiting error's status once and keeps its text for last_message, with the number of
  // those after it; else OK.
  graft_status take() {
    if (!any()) return GRAFT_OK;
    std::lock_guard lock(mutex_);
    if (!any_.load(std::memory_order_relaxed)) return GRAFT_OK;
    taken_ = std::exchange(waiting_, {});
    if (more_ != 0) {
      taken_.text += " (" + std::to_string(std::exchange(more_, 0)) + " more failed after it)";
    }
    any_.store(false, std::memory_order_release);
    return fail(taken_.status, taken_.text);
  }

  // The error that take() gave last, for stream_error; status OK before the first.
  LateError taken() const {
    std::lock_guard lock(mutex_);
    return taken_;
  }

  // Whether take() would give an error. Costs no lock, so each wait may ask.
  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  LateError waiting_, taken_;  // guarded by mutex_, as is the next
  uint64_t more_ = 0;          // errors after waiting_
};

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_FAILURE_H_
