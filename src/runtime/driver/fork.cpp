// src/runtime/driver/fork.cpp: knows whether this process is a forked child of one that used a
// device.
#include "runtime/driver/fork.h"

#include <pthread.h>

#include "runtime/driver/error.h"

namespace graft {

std::atomic<bool> fork_state::child{false};

void refuse_forked_child() {
  if (!forked_child()) return;
  throw Error(GRAFT_INVALID_ARGUMENT,
              "Cannot re-initialize Graft in forked subprocess. To use Graft with "
              "multiprocessing, you must use the 'spawn' start method");
}

void watch_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_state::child.store(true); });
  if (registered != 0) throw Error(GRAFT_INTERNAL, "pthread_atfork failed: out of memory");
}

}  // namespace graft
