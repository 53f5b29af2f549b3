// drivers/opencl/stream/backlog.cpp: commands that their caller need not wait for OpenCL to take.
#include "backlog.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "graft/driver_slot.h"
#include "queue.h"

namespace graft::opencl {
namespace {

// How long the thread lets commands gather, and how often it finds none before it sleeps: naps of
// this length cost less than a wake by the caller for each command.
constexpr std::chrono::microseconds kNap{50};
constexpr int kIdleNaps = 10;
// What the caller may be ahead; then it works itself.
constexpr size_t kMostWords = size_t{64} << 10;

constexpr size_t kTaskWords = sizeof(Task) / sizeof(uint64_t);
static_assert(sizeof(Task) % sizeof(uint64_t) == 0);

// Tells a task at the end of a block that it is done.
class Ending {
 public:
  Ending(const Task& task, const void* head) : done_(task.done), head_(head) {}
  ~Ending() {
    if (done_ != nullptr) done_(head_);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  void (*done_)(const void* head);
  const void* head_;
};

}  // namespace

graft_status Backlog::run_now(const Task& task) {
  drain();
  std::lock_guard turn(turn_);
  const Ending ending(task, task.head);
  uint32_t tag = task.tag;
  return task.run(queue_, tag, task.head, task.tail);
}

bool Backlog::push(const Task& task, bool only_beside_thread) {
  std::lock_guard lock(mutex_);
  if (waiting_.size() > kMostWords || (only_beside_thread && !awake_)) return false;
  const size_t at = waiting_.size(), head = task.head_bytes / sizeof(uint64_t);
  waiting_.resize(at + kTaskWords + head + task.tail_bytes / sizeof(uint64_t));
  uint64_t* to = waiting_.data() + at;
  std::memcpy(to, &task, sizeof task);
  std::memcpy(to + kTaskWords, task.head, task.head_bytes);
  if (task.tail_bytes != 0) std::memcpy(to + kTaskWords + head, task.tail, task.tail_bytes);
  if (!std::exchange(awake_, true)) wanted_.notify_one();
  return true;
}

graft_status Backlog::enter(const Task& task) {
  if (direct_) return run_now(task);
  if (push(task, true)) return GRAFT_OK;
  if (queue_.reap() && task.lengthy == 0) return run_now(task);
  if (!thread_.joinable()) thread_ = std::thread(&Backlog::work, this);
  return push(task, false) ? GRAFT_OK : run_now(task);
}

void Backlog::run(const Words& words, bool drop) {
  for (size_t at = 0; at < words.size();) {
    Task task;
    std::memcpy(&task, words.data() + at, sizeof task);
    const uint64_t* head = words.data() + at + kTaskWords;
    const uint64_t* tail = head + task.head_bytes / sizeof(uint64_t);
    at = size_t(tail - words.data()) + task.tail_bytes / sizeof(uint64_t);
    const Ending ending(task, head);
    if (drop) continue;
    graft_status status = GRAFT_DEVICE_LOST;
    uint32_t tag = task.tag;
    try {
      if (!queue_.device->lost.load(std::memory_order_relaxed)) {
        status = task.run(queue_, tag, head, tail);
      }
    } catch (const std::exception& error) {
      status = fail(GRAFT_INTERNAL, error.what());
    }
    if (status != GRAFT_OK) queue_.refused(status, tag, last_text());
  }
}

bool Backlog::drain() {
  bool any = false;
  std::lock_guard turn(turn_);
  for (;; any = true) {
    running_.clear();
    {
      std::lock_guard lock(mutex_);
      if (waiting_.empty()) break;
      waiting_.swap(running_);
    }
    run(running_, false);
  }
  return any;
}

void Backlog::keep_none() {
  direct_ = true;
  drain();
}

void Backlog::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_one();
  thread_.join();
  run(waiting_, true);
  waiting_.clear();
}

void Backlog::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this] { return stop_ || awake_; });
    for (int idle = 0; idle < kIdleNaps && !stop_; ++idle) {
      lock.unlock();
      if (drain()) idle = 0;
      queue_.flush();
      queue_.reap();
      std::this_thread::sleep_for(kNap);
      lock.lock();
    }
    if (stop_) return;
    awake_ = !waiting_.empty();
  }
}

}  // namespace graft::opencl
