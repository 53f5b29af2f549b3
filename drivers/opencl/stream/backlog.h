// drivers/opencl/stream/backlog.h: commands that their caller need not wait for OpenCL to take.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_BACKLOG_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_BACKLOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "graft/driver.h"

namespace graft::opencl {

class Queue;

// A command, or several, that can be copied: run enqueues it from its two parts, of which the
// second may be empty. Both are whole numbers of 8 bytes long and need no more alignment.
struct Task {
  // tag: the task's; where run fails, the tag of the command that failed.
  graft_status (*run)(Queue& queue, uint32_t& tag, const void* head, const void* tail);
  // Called once, when run was called or never will be; may be null.
  void (*done)(const void* head);
  uint32_t tag;
  uint32_t lengthy;  // 1: for the thread, also where the caller could run it at once
  uint32_t head_bytes, tail_bytes;
  const void* head;
  const void* tail;
};

// The commands of one queue that OpenCL was not given yet, in order, and a thread that gives them.
// OpenCL may take long for a command (locks that it shares with its workers, a thread to wake), so
// the caller of enter() seldom goes there: when the device has nothing to do and the thread sleeps.
class Backlog {
 public:
  explicit Backlog(Queue& queue) : queue_(queue) {}
  // REQUIRES: stop() was called, or nothing ever entered.
  ~Backlog() = default;

  // Takes a task. What OpenCL says against it is returned, or fails the queue later. Calls are
  // serialised by the caller.
  graft_status enter(const Task& task);

  // Gives everything to OpenCL, on this thread; true when there was something. Any thread.
  bool drain();

  // From now on OpenCL gets every command at its call: someone else enqueues there, too. Serialised
  // with enter().
  void keep_none();

  // Ends the thread. What is still there is dropped.
  void stop();

 private:
  // Commands one after the other, each a Task, whose parts are not valid, and then its parts.
  using Words = std::vector<uint64_t>;

  graft_status run_now(const Task& task);
  bool push(const Task& task, bool only_beside_thread);
  void run(const Words& words, bool drop);
  void work();

  Queue& queue_;
  std::thread thread_;
  bool direct_ = false;  // the caller's
  std::mutex turn_;      // held by who gives commands to OpenCL; guards running_
  Words running_;

  std::mutex mutex_;  // after turn_; guards what follows
  std::condition_variable wanted_;
  Words waiting_;
  bool awake_ = false;  // the thread looks at waiting_ soon
  bool stop_ = false;
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_BACKLOG_H_
