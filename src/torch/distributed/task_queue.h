// src/torch/distributed/task_queue.h: work that waits for other processes, on threads of its own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace graft::binding {

// Runs job soon, on a thread that runs nothing else meanwhile: it may block. Jobs run in any order.
// What it throws is dropped. The threads are kept for reuse and end after a while without work.
void run_in_background(std::function<void()> job);

// Runs tasks one after the other, in the order of add, on a background thread. Thread-safe. A queue
// lives until its last task is done, whoever holds it.
class TaskQueue : public std::enable_shared_from_this<TaskQueue> {
 public:
  static std::shared_ptr<TaskQueue> make() { return std::shared_ptr<TaskQueue>(new TaskQueue); }

  // What task throws is dropped.
  void add(std::function<void()> task);

 private:
  TaskQueue() = default;
  void drain();

  std::mutex mutex_;  // guards what follows
  std::deque<std::function<void()>> tasks_;
  bool draining_ = false;
};

}  // namespace graft::binding
