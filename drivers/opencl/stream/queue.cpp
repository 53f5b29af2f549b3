// drivers/opencl/stream/queue.cpp: an in-order command queue that knows how each of its commands
// ended.
#include "queue.h"

#include <utility>

#include "graft/driver_slot.h"
#include "platform/status.h"

namespace graft::opencl {
namespace {

// How many commands a busy device may not know of yet.
constexpr uint32_t kUnsent = 16;
// How many commands pass between two looks at which are done.
constexpr uint64_t kReapEvery = 64;

}  // namespace

Mark::~Mark() {
  if (event != nullptr && !forked()) cl().ReleaseEvent(event);
}

graft_status Mark::query() const {
  if (event == nullptr) return GRAFT_OK;
  if (status_now(event) <= CL_COMPLETE) return GRAFT_OK;
  queue->flush();
  return GRAFT_BUSY;
}

void Mark::wait() const {
  if (event == nullptr) return;
  queue->flush();
  queue->await_calls(calls);
  cl().WaitForEvents(1, &event);
}

bool Mark::wait_within(uint64_t timeout_ns) {
  if (event == nullptr) return true;
  queue->flush();
  return completion.await(event, timeout_ns);
}

LateError Mark::error() const {
  queue->reap();
  return queue->failure.inherited(number, told);
}

Queue::~Queue() {
  if (forked()) return;
  for (size_t i = first_; i < commands_.size(); ++i) cl().ReleaseEvent(commands_[i].event);
  cl().ReleaseCommandQueue(handle);
}

void Queue::note(cl_event event, uint32_t tag, bool work, std::shared_ptr<Mark> waited) {
  const bool traced = work && device->trace.active();
  bool look = false, send = false;
  {
    std::lock_guard lock(mutex_);
    const bool idle = first_ == commands_.size();
    if (idle) {
      commands_.clear();
      first_ = 0;
    }
    commands_.push_back({event, tag, traced, ++noted_, std::move(waited)});
    look = noted_ % kReapEvery == 0;
    send = ++unsent_ >= kUnsent || idle;
    if (send) unsent_ = 0;
  }
  if (send) cl().Flush(handle);
  if (look) reap();
}

void Queue::refused(graft_status status, uint32_t tag, const std::string& text) {
  LateError error = {status, tag, 0, text};
  {
    std::lock_guard lock(mutex_);
    error.number = ++noted_;
  }
  failure.set(error);
}

cl_event Queue::last_event() {
  if (first_ == commands_.size()) return nullptr;
  cl_event event = commands_.back().event;
  cl().RetainEvent(event);
  return event;
}

graft_status Queue::mark(bool timed, std::shared_ptr<Mark>* out) {
  backlog.drain();
  auto mark = std::make_shared<Mark>();
  mark->queue = shared_from_this();
  if (timed) {
    const cl_int code = cl().EnqueueMarkerWithWaitList(handle, 0, nullptr, &mark->event);
    if (code != CL_SUCCESS) return device->failed(code, "event_record", GRAFT_INTERNAL);
    cl().RetainEvent(mark->event);
    note(mark->event, 0, false);
  }
  {
    std::lock_guard lock(mutex_);
    if (!timed) mark->event = last_event();
    mark->number = noted_;
    mark->told = failure.told();
    mark->calls = calls_begun_.load();
  }
  flush();
  *out = std::move(mark);
  return GRAFT_OK;
}

LateError Queue::outcome(const Command& command, cl_int status) const {
  LateError error;
  error.tag = command.tag;
  error.number = command.number;
  if (status >= CL_COMPLETE) return error;
  error.status = status_of(status, GRAFT_LAUNCH_FAILED);
  error.text = "a command failed on the device: " + code_name(status);
  return error;
}

void Queue::close(const Command& command, cl_int status) {
  if (status < 0) {
    const bool follows = status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    const LateError error = outcome(command, status);
    if (error.status == GRAFT_DEVICE_LOST) device->lost.store(true);
    if (!follows || (command.waited == nullptr && !failure.any())) failure.set(error);
  }
  if (command.traced) device->trace.add(command.event, command.tag, stream);
  cl().ReleaseEvent(command.event);
}

bool Queue::reap() {
  std::vector<std::pair<std::shared_ptr<Mark>, LateError>> waited;
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    for (; first_ < commands_.size(); ++first_) {
      Command& command = commands_[first_];
      const cl_int status = status_now(command.event);
      if (status > CL_COMPLETE) break;
      close(command, status);
      if (command.waited != nullptr) {
        waited.emplace_back(std::move(command.waited), outcome(command, status));
      }
    }
    idle = first_ == commands_.size();
    if (first_ > 1024 && first_ > commands_.size() / 2) {
      commands_.erase(commands_.begin(), commands_.begin() + ptrdiff_t(first_));
      first_ = 0;
    }
  }
  for (auto& [mark, at] : waited) {
    LateError error = mark->error();
    if (error.status == GRAFT_OK) error = at;
    error.number = at.number;
    if (error.status != GRAFT_OK) failure.set(error);
  }
  return idle;
}

void Queue::flush() {
  {
    std::lock_guard lock(mutex_);
    if (unsent_ == 0) return;
    unsent_ = 0;
  }
  cl().Flush(handle);
}

void Queue::call_begins() { calls_begun_.fetch_add(1); }

void Queue::call_done() {
  calls_done_.fetch_add(1);
  calls_done_.notify_all();
}

void Queue::await_calls(uint64_t count) const {
  for (uint64_t now = calls_done_.load(); now < count; now = calls_done_.load()) {
    calls_done_.wait(now);
  }
}

graft_status Queue::finish_within(uint64_t timeout_ns) {
  backlog.drain();
  if (reap()) return finish();
  std::shared_ptr<Mark> all;
  if (graft_status status = mark(false, &all); status != GRAFT_OK) return status;
  return all->wait_within(timeout_ns) ? finish() : GRAFT_BUSY;
}

graft_status Queue::finish() {
  backlog.drain();
  flush();
  await_calls(calls_begun_.load());
  const cl_int code = cl().Finish(handle);
  if (!reap()) {
    std::shared_ptr<Mark> all;
    if (mark(false, &all) == GRAFT_OK) all->wait();
    reap();
  }
  const bool told = code == CL_SUCCESS || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (told || (failure.any() && code != CL_DEVICE_NOT_AVAILABLE)) return GRAFT_OK;
  return device->failed(code, "waiting for a stream", GRAFT_LAUNCH_FAILED);
}

}  // namespace graft::opencl
