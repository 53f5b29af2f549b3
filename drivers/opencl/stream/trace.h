// drivers/opencl/stream/trace.h: tells a profiler when the device ran each command
// (graft.profiler).
#ifndef GRAFT_DRIVERS_OPENCL_STREAM_TRACE_H_
#define GRAFT_DRIVERS_OPENCL_STREAM_TRACE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "graft/extensions.h"
#include "platform/api.h"

namespace graft::opencl {

// Of one device. Thread-safe.
class Trace {
 public:
  // offset_ns: what is added to the device's times to make them the host's CLOCK_REALTIME. False
  // when it is on already.
  bool start(graft_emit_trace emit, void* context, int64_t offset_ns);
  void stop();
  bool active() const { return active_.load(std::memory_order_relaxed); }

  // Tells of a command that is done.
  void add(cl_event event, uint32_t tag, graft_stream stream);

 private:
  std::atomic<bool> active_{false};
  std::mutex mutex_;  // guards what follows
  graft_emit_trace emit_ = nullptr;
  void* context_ = nullptr;
  int64_t offset_ns_ = 0;
};

// Slots of graft.profiler.
struct ProfilerSlots {
  static graft_status trace_start(graft_device device, graft_emit_trace emit, void* context);
  static graft_status trace_stop(graft_device device);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_STREAM_TRACE_H_
