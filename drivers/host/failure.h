// drivers/host/failure.h: the late error of a stream.
#ifndef GRAFT_DRIVERS_HOST_FAILURE_H_
#define GRAFT_DRIVERS_HOST_FAILURE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "graft/driver.h"

namespace graft::host {

struct LateError {
  graft_status status = GRAFT_OK;
  uint32_t tag = 0;
  std::string text;
};

// Holds the first error until someone takes it, and counts those after it. Thread-safe.
class Failure {
 public:
  // Keeps error, or counts it where an older one is still waiting.
  void set(const LateError& error);

  // The waiting error, which stays; status OK when there is none.
  LateError peek() const;

  // Gives the waiting error's status once and keeps its text for last_message, with the number of
  // those after it; else OK.
  graft_status take();

  // The error that take() gave last.
  LateError taken() const;

  bool any() const { return any_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  LateError waiting_, taken_;  // guarded by mutex_, as is the next
  uint64_t more_ = 0;          // errors after waiting_
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_FAILURE_H_
