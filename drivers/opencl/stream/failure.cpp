// drivers/opencl/stream/failure.cpp: the late error of a stream.
#include "failure.h"

#include <utility>

#include "graft/driver_slot.h"

namespace graft::opencl {

void Failure::set(const LateError& error) {
  std::lock_guard lock(mutex_);
  if (any_.load(std::memory_order_relaxed)) {
    ++more_;
    return;
  }
  waiting_ = error;
  any_.store(true, std::memory_order_release);
}

graft_status Failure::take(uint64_t last) {
  if (!any()) return GRAFT_OK;
  std::lock_guard lock(mutex_);
  if (!any_.load(std::memory_order_relaxed) || waiting_.number > last) return GRAFT_OK;
  taken_ = std::exchange(waiting_, {});
  if (more_ != 0) {
    taken_.text += " (" + std::to_string(std::exchange(more_, 0)) + " more failed after it)";
  }
  told_.fetch_add(1, std::memory_order_relaxed);
  any_.store(false, std::memory_order_release);
  return fail(taken_.status, taken_.text);
}

LateError Failure::inherited(uint64_t last, uint64_t told) const {
  std::lock_guard lock(mutex_);
  if (any_.load(std::memory_order_relaxed) && waiting_.number <= last) return waiting_;
  const bool fresh = told_.load(std::memory_order_relaxed) != told;
  return fresh && taken_.number <= last ? taken_ : LateError{};
}

LateError Failure::taken() const {
  std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace graft::opencl
