// src/runtime/wait/checks.h: what a stream's commands depend on beyond the stream.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/driver/export.h"

namespace graft {

// Questions that a stream asks after each wait: a command elsewhere whose results it uses may have
// failed, and its own commands know nothing of that. Thread-safe.
class GRAFT_EXPORT WaitChecks {
 public:
  // Asked until it returns false, with no lock held; what it throws goes to who waited.
  using Question = std::function<bool()>;

  // Adds a question; one of the same owner is replaced.
  void add(const void* owner, Question question);

  // Adds the questions of another stream, which keeps them, too.
  void take_over(const WaitChecks& other);

  // Asks all of them; throws the first failure after that. Costs a load where there are none.
  void ask() {
    if (__builtin_expect(any_.load(std::memory_order_acquire), 0)) ask_all();
  }

 private:
  using Entry = std::pair<const void*, Question>;

  std::vector<Entry> entries() const;
  void ask_all();

  std::atomic<bool> any_{false};  // whether entries_ holds any
  mutable std::mutex mutex_;      // guards entries_
  std::vector<Entry> entries_;
};

}  // namespace graft
