// drivers/opencl/stream/completion.cpp: waits for one OpenCL event that end at a time.
#include "completion.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

namespace graft::opencl {
namespace {

using std::chrono::nanoseconds;

constexpr uint64_t kLongest = 3600ull * 1000000000;  // what a condition variable takes for sure

// For want of callbacks: asks again and again, with pauses that grow with the wait.
bool poll(cl_event event, uint64_t timeout_ns) {
  constexpr nanoseconds kShortestPause = std::chrono::microseconds(10);  // a sleep takes longer
  constexpr nanoseconds kLongestPause = std::chrono::milliseconds(1);
  const auto begin = std::chrono::steady_clock::now();
  while (status_now(event) > CL_COMPLETE) {
    const nanoseconds waited = std::chrono::steady_clock::now() - begin;
    if (uint64_t(waited.count()) >= timeout_ns) return false;
    const nanoseconds pause = std::min(waited / 16, kLongestPause);
    pause < kShortestPause ? std::this_thread::yield() : std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

struct Completion::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;  // guarded by mutex

  static void CL_CALLBACK call(cl_event, cl_int, void* context) {
    const std::unique_ptr<std::shared_ptr<State>> state(
        static_cast<std::shared_ptr<State>*>(context));
    const std::lock_guard lock((*state)->mutex);
    (*state)->over = true;
    (*state)->changed.notify_all();
  }
};

std::shared_ptr<Completion::State> Completion::state_of(cl_event event) {
  const std::lock_guard lock(mutex_);
  if (state_ != nullptr || cl().SetEventCallback == nullptr) return state_;
  auto state = std::make_shared<State>();
  auto context = std::make_unique<std::shared_ptr<State>>(state);
  if (cl().SetEventCallback(event, CL_COMPLETE, &State::call, context.get()) == CL_SUCCESS) {
    static_cast<void>(context.release());
    state_ = std::move(state);
  }
  return state_;
}

bool Completion::await(cl_event event, uint64_t timeout_ns) {
  if (status_now(event) <= CL_COMPLETE) return true;
  if (timeout_ns == 0) return false;
  const std::shared_ptr<State> state = state_of(event);
  if (state == nullptr) return poll(event, timeout_ns);
  std::unique_lock lock(state->mutex);
  return state->changed.wait_for(lock, nanoseconds(std::min(timeout_ns, kLongest)),
                                 [&] { return state->over; });
}

cl_int status_now(cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int code =
      cl().GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return code == CL_SUCCESS ? status : code;
}

}  // namespace graft::opencl
