// drivers/opencl/stream/callback_thread.h: host functions that take their turn in a stream.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_CALLBACK_THREAD_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_CALLBACK_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "platform/api.h"
#include "queue.h"

namespace graft::opencl {

// Runs functions between the commands of one queue, on a thread that the first one starts. An own
// thread, because OpenCL forbids its callbacks to block, and some of its implementations stop all
// queues while one runs.
class CallbackThread {
 public:
  ~CallbackThread();

  // Later commands of queue wait for function, which runs once the earlier ones are done. waited:
  // what function itself waits for, whose error becomes queue's.
  graft_status enqueue(Queue& queue, std::function<void()> function,
                       std::shared_ptr<Mark> waited = nullptr);

 private:
  struct Call {
    std::shared_ptr<Mark> after;
    std::function<void()> function;
    cl_event done;  // a user event
  };

  void work();

  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Call> calls_;
  bool stop_ = false;
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_CALLBACK_THREAD_H_
