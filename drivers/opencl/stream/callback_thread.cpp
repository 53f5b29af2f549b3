// drivers/opencl/stream/callback_thread.cpp: host functions that take their turn in a stream.
#include "callback_thread.h"

#include <utility>

namespace graft::opencl {

CallbackThread::~CallbackThread() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

graft_status CallbackThread::enqueue(Queue& queue, std::function<void()> function,
                                     std::shared_ptr<Mark> waited) {
  const graft_device device = queue.device;
  Call call = {nullptr, std::move(function), nullptr};
  if (graft_status status = queue.mark(false, &call.after); status != GRAFT_OK) return status;
  if (!thread_.joinable()) thread_ = std::thread(&CallbackThread::work, this);
  cl_int code = CL_SUCCESS;
  call.done = cl().CreateUserEvent(device->context, &code);
  if (code != CL_SUCCESS) return device->failed(code, "host_callback", GRAFT_INTERNAL);
  cl_event barrier = nullptr;
  code = cl().EnqueueBarrierWithWaitList(queue.handle, 1, &call.done, &barrier);
  if (code != CL_SUCCESS) {
    cl().ReleaseEvent(call.done);
    return device->failed(code, "host_callback", GRAFT_INTERNAL);
  }
  queue.call_begins();
  {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_one();
  queue.note(barrier, 0, false, std::move(waited));
  queue.flush();
  return GRAFT_OK;
}

void CallbackThread::work() {
  for (;;) {
    Call call;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !calls_.empty(); });
      if (calls_.empty()) return;
      call = std::move(calls_.front());
      calls_.pop_front();
    }
    call.after->wait();
    call.function();
    cl().SetUserEventStatus(call.done, CL_COMPLETE);
    cl().ReleaseEvent(call.done);
    call.after->queue->call_done();
  }
}

}  // namespace graft::opencl
