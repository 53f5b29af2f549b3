// drivers/host/stream/queue.cpp: the commands of a stream that wait for its worker.
#include "queue.h"

#include <utility>

#include "kernel/processor.h"

namespace graft::host {
namespace {

// A worker that has just worked likely gets more soon; longer would take a core from the others.
constexpr int kSpins = 200;

}  // namespace

Queue::Queue() : oldest_(new Chunk), tail_(oldest_), head_(oldest_) {}

Queue::~Queue() {
  for (Chunk* chunk = oldest_; chunk != nullptr;) delete std::exchange(chunk, chunk->next);
}

Queue::Chunk* Queue::emptied() {
  if (oldest_ == head_.load(std::memory_order_acquire)) return nullptr;
  return std::exchange(oldest_, oldest_->next);
}

Command& Queue::next() {
  return tail_->commands[pushed_.load(std::memory_order_relaxed) % kCommands];
}

void Queue::publish() {
  uint32_t count = pushed_.load(std::memory_order_relaxed) + 1;
  if (count % kCommands == 0) {
    Chunk* fresh = emptied();
    if (fresh == nullptr) fresh = new Chunk, ++chunks_;
    const uint32_t full = (count - done_.load(std::memory_order_relaxed)) / kCommands + 1;
    if (chunks_ > full + kSpares) {
      if (const Chunk* more = emptied()) delete more, --chunks_;
    }
    fresh->next = nullptr;
    tail_->next = fresh;
    tail_ = fresh;
  }
  pushed_.store(count);
  pushed_.notify_one();
}

bool Queue::wait_idle(uint64_t timeout_ns) {
  uint32_t target = pushed_.load(std::memory_order_relaxed);
  SleepLimit limit(timeout_ns);
  for (uint32_t done; int32_t((done = done_.load(std::memory_order_acquire)) - target) < 0;) {
    if (!done_.await_change(done, limit)) return false;
  }
  return true;
}

Command* Queue::front() {
  uint32_t count = done_.load(std::memory_order_relaxed);
  for (int spin = 0; spin < kSpins; ++spin) {
    if (pushed_.load(std::memory_order_acquire) != count) break;
    spin_pause();
  }
  while (pushed_.load(std::memory_order_acquire) == count) pushed_.wait(count);
  if (stopped_.load()) return nullptr;
  return &head_.load(std::memory_order_relaxed)->commands[count % kCommands];
}

void Queue::pop() {
  uint32_t count = done_.load(std::memory_order_relaxed) + 1;
  if (count % kCommands == 0) {
    head_.store(head_.load(std::memory_order_relaxed)->next, std::memory_order_release);
  }
  done_.set(count);
}

void Queue::stop() {
  stopped_.store(true);
  // A waiter sleeps on the counter, so the counter has to move; nothing is read after it.
  pushed_.fetch_add(1);
  pushed_.notify_all();
}

}  // namespace graft::host
