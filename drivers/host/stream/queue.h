// drivers/host/stream/queue.h: the commands of a stream that wait for its worker.
#ifndef GRAFT_DRIVERS_HOST_STREAM_QUEUE_H_
#define GRAFT_DRIVERS_HOST_STREAM_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "graft/driver.h"
#include "sleep_word.h"

namespace graft::host {

// A failed command says why.
struct Outcome {
  graft_status status = GRAFT_OK;
  const char* text = "";  // stays until the thread runs its next command
};

// One command: any callable that returns an Outcome, kept in place when it is small.
class Command {
 public:
  template <class F>
  void set(uint32_t tag, bool survives, F&& function) {
    using Function = std::decay_t<F>;
    tag_ = tag;
    survives_ = survives;
    if constexpr (sizeof(Function) <= sizeof place_) {
      new (place_) Function(std::forward<F>(function));
      run_ = [](Command& self, bool skip) {
        auto* kept = std::launder(reinterpret_cast<Function*>(self.place_));
        Outcome outcome = skip ? Outcome{} : (*kept)();
        kept->~Function();
        return outcome;
      };
    } else {
      auto boxed = [box = std::make_unique<Function>(std::forward<F>(function))] {
        return (*box)();
      };
      set(tag, survives, std::move(boxed));
    }
  }

  // Runs it once and destroys it; skip: only destroys it.
  Outcome run(bool skip) { return run_(*this, skip); }
  uint32_t tag() const { return tag_; }
  // Whether it runs on a lost device too: marks, waits and callbacks must, or someone hangs.
  bool survives() const { return survives_; }

 private:
  Outcome (*run_)(Command&, bool);
  uint32_t tag_;
  bool survives_;
  alignas(16) std::byte place_[304];
};

// Any number of commands, one pushing thread at a time, one popping thread.
class Queue {
 public:
  Queue();
  ~Queue();

  // A place for the next command; visible to the other side only after publish().
  Command& next();
  void publish();

  // Whether everything pushed is done. For the pushing side.
  bool idle() const {
    return done_.load(std::memory_order_acquire) == pushed_.load(std::memory_order_relaxed);
  }
  // As idle(), but a last command that announced its end counts as done.
  bool settled() const {
    uint32_t pushed = pushed_.load(std::memory_order_relaxed);
    uint32_t left = pushed - done_.load(std::memory_order_acquire);
    return left == 0 || (left == 1 && announced_.load(std::memory_order_acquire) == pushed);
  }
  // Blocks until everything pushed before the call is done, or the limit is over: then false.
  bool wait_idle(uint64_t timeout_ns = SleepLimit::kForever);

  // For the popping side: the oldest command, after a wait when there is none; NULL after stop().
  Command* front();
  // The command from front() is done but for what settled() does not have to wait for.
  void announce() { announced_.store(done_.load(std::memory_order_relaxed) + 1); }
  // The command from front() is done.
  void pop();
  // Ends the popping side. REQUIRES: everything pushed is done.
  void stop();

 private:
  static constexpr uint32_t kCommands = 64, kSpares = 256;
  struct Chunk {
    Command commands[kCommands];
    Chunk* next = nullptr;
  };

  Chunk* emptied();  // one to push into again, NULL when none is empty

  std::atomic<uint32_t> pushed_{0};
  std::atomic<bool> stopped_{false};
  // One list, from oldest_ by head_ to tail_: what is popped, and what is pushed. Chunks before
  // head_ are empty; the pushing side takes them again, the oldest first, and frees one more each
  // time while there are more than kSpares.
  Chunk *oldest_, *tail_;  // pushing side, as the next
  uint32_t chunks_ = 1;    // in the list
  alignas(64) SleepWord done_;
  std::atomic<uint32_t> announced_{0};  // what done_ becomes after the command
  std::atomic<Chunk*> head_;            // popping side
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_QUEUE_H_
