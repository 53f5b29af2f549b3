// src/torch/distributed/task_queue.cpp: work that waits for other processes, on threads of its own.
#include "torch/distributed/task_queue.h"

#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>

namespace graft::binding {
namespace {

constexpr std::chrono::seconds kIdle(10);

void run(const std::function<void()>& job) noexcept {
  try {
    job();
  } catch (...) {
  }
}

class BackgroundThreads {
 public:
  void run_soon(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (idle_ >= jobs_.size()) {
      wake_.notify_one();
    } else {
      std::thread([this] { work(); }).detach();
    }
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait_for(lock, kIdle, [this] { return !jobs_.empty(); });
      --idle_;
      if (jobs_.empty()) return;
      {
        const std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        run(job);
      }
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
};

BackgroundThreads& threads() {
  static auto* threads = new BackgroundThreads;  // they may outlive static objects
  return *threads;
}

}  // namespace

void run_in_background(std::function<void()> job) { threads().run_soon(std::move(job)); }

void TaskQueue::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (draining_) return;
    draining_ = true;
  }
  run_in_background([self = shared_from_this()] { self->drain(); });
}

void TaskQueue::drain() {
  for (;;) {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) {
        draining_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run(task);
  }
}

}  // namespace graft::binding
