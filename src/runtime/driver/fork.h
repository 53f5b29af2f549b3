// src/runtime/driver/fork.h: knows whether this process is a forked child of one that used a
// device.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/driver/export.h"

namespace graft {

namespace fork_state {
extern GRAFT_EXPORT std::atomic<bool> child;
}

// True in a child that was forked after a device had been opened. Drivers' threads and memory did
// not come along, so nothing may call a driver there: destructors do nothing, calls throw Error.
inline bool forked_child() noexcept { return fork_state::child.load(std::memory_order_relaxed); }

// Throws Error INVALID_ARGUMENT with the remedy when forked_child().
GRAFT_EXPORT void refuse_forked_child();

// From now on a fork makes a forked child. Called when a device is opened; cheap to call again.
void watch_forks();

// A mutex that knows whether the calling thread holds it.
class OwnedMutex {
 public:
  void lock() {
    mutex_.lock();
    holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void unlock() {
    holder_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }
  bool mine() const {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> holder_;
};

}  // namespace graft
