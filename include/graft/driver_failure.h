// include/graft/driver_failure.h: the late error of a stream (driver.h, rule 3), for drivers
// written in C++; optional, inline only.
//
// The code that runs the commands keeps the first error:
//
//   failure.set({GRAFT_LAUNCH_FAILED, tag, "the kernel add_n failed"});
//
// and stream_synchronize, stream_query and event_synchronize end with
//
//   return failure.take();
//
// which returns the status once and keeps the text for last_message. stream_error reports taken().
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_FAILURE_H_
#define GRAFT_DRIVER_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "graft/driver_slot.h"

// Two drivers of one process must not share this code: each may be built with another release of
// the header.
#pragma GCC visibility push(hidden)

namespace graft {

// A failed command's error. If status is OK, there is none and the other fields have no meaning.
struct LateError {
  graft_status status = GRAFT_OK;
  uint32_t tag = 0;  // of the command
  std::string text;  // for the user: the command, and the vendor's text
};

// Holds the first error until take(), and counts later ones. Thread-safe.
class Failure {
 public:
  // Keeps error, or counts error if an older one was not taken.
  void set(const LateError& error) {
    std::lock_guard lock(mutex_);
    if (any_.load(std::memory_order_relaxed)) {
      ++more_;
      return;
    }
    waiting_ = error;
    any_.store(true, std::memory_order_release);
  }

  // The held error, which take() can still take; status OK if there is none.
  LateError peek() const {
    if (!any()) return {};
    std::lock_guard lock(mutex_);
    return any_.load(std::memory_order_relaxed) ? waiting_ : LateError{};
  }

  // Returns the held error's status once and keeps its text, with the number of later errors, for
  // last_message; OK if there is no error.
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

  // The error that take() returned last, for stream_error; status OK before the first.
  LateError taken() const {
    std::lock_guard lock(mutex_);
    return taken_;
  }

  // Whether take() would return an error. Takes no lock, so each wait may call it.
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
