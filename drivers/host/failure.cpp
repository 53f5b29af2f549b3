// drivers/host/failure.cpp: the late error of a stream.
#include "failure.h"

#include <utility>

#include "graft/driver_slot.h"

namespace graft::host {

void Failure::set(const LateError& error) {
  std::lock_guard lock(mutex_);
  if (any_.load(std::memory_order_relaxed)) {
    ++more_;
    return;
  }
  waiting_ = error;
  any_.store(true, std::memory_order_release);
}

LateError Failure::peek() const {
  if (!any()) return {};
  std::lock_guard lock(mutex_);
  return any_.load(std::memory_order_relaxed) ? waiting_ : LateError{};
}

graft_status Failure::take() {
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

LateError Failure::taken() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace graft::host
