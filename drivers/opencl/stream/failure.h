// drivers/opencl/stream/failure.h: the late error of a stream.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_FAILURE_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "graft/driver.h"

namespace graft::opencl {

struct LateError {
  graft_status status = GRAFT_OK;
  uint32_t tag = 0;
  uint64_t number = 0;  // of the command in its queue, from 1
  std::string text;
};

// Holds the first error until someone takes it, and counts those after it. Thread-safe.
class Failure {
 public:
  // Keeps error, or counts it where an older one is still waiting.
  void set(const LateError& error);

  // Gives the waiting error's status once and keeps its text for last_message, with the number of
  // those after it; else OK. Only an error of a command up to last is taken.
  graft_status take(uint64_t last = UINT64_MAX);

  // The error that a waiter for command number last inherits: the waiting one, or the one that was
  // taken since the waiter's mark was set, when told errors were taken. OK when there is none.
  LateError inherited(uint64_t last, uint64_t told) const;

  // The error that take() gave last.
  LateError taken() const;

  // How many errors take() gave.
  uint64_t told() const { return told_.load(std::memory_order_relaxed); }

  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> any_{false};
  std::atomic<uint64_t> told_{0};
  mutable std::mutex mutex_;
  LateError waiting_, taken_;  // guarded by mutex_, as is the next
  uint64_t more_ = 0;          // errors after waiting_
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_FAILURE_H_
