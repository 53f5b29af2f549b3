// drivers/opencl/stream/completion.h: waits for one OpenCL event that end at a time.
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_COMPLETION_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_COMPLETION_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "platform/api.h"

namespace graft::opencl {

// OpenCL's own waits know no end, so an event is asked once to call back. Any thread.
class Completion {
 public:
  // Whether the event is over, well or not, before the time is. REQUIRES: always the same event,
  // which was sent off.
  bool await(cl_event event, uint64_t timeout_ns);

 private:
  struct State;
  std::shared_ptr<State> state_of(cl_event event);

  std::mutex mutex_;
  std::shared_ptr<State> state_;  // guarded by mutex_; null until somebody waits
};

// CL_COMPLETE, an error below it, or a state above it. Never blocks.
cl_int status_now(cl_event event);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_COMPLETION_H_
