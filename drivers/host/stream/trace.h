// drivers/host/stream/trace.h: tells a profiler what each command of a device did: graft.profiler.
#ifndef GRAFT_DRIVERS_HOST_STREAM_TRACE_H_
#define GRAFT_DRIVERS_HOST_STREAM_TRACE_H_

#include <cstdint>
#include <mutex>

#include "fault.h"
#include "graft/extensions.h"

namespace graft::host {

// Who is told about the commands of a device.
struct Trace {
  std::mutex mutex;  // held while emit runs; guards what follows
  graft_emit_trace emit = nullptr;
  void* context = nullptr;
  int64_t base_ns = 0;  // since the epoch: what simulated time counts from
};

// Slots of graft.profiler.
struct ProfilerSlots {
  static graft_status trace_start(graft_device device, graft_emit_trace emit, void* context);
  static graft_status trace_stop(graft_device device);
};

// Tells of the command with a tag from here to the end of the scope. Costs one load while no device
// is traced.
class TracedRun {
 public:
  TracedRun(graft_stream stream, uint32_t tag) {
    if ((detours.load(std::memory_order_relaxed) & kDetourTraced) != 0) [[unlikely]]
      begin(stream, tag);
  }
  ~TracedRun() {
    if (start_ns_ != 0) [[unlikely]]
      end();
  }
  TracedRun(const TracedRun&) = delete;
  TracedRun& operator=(const TracedRun&) = delete;

 private:
  void begin(graft_stream stream, uint32_t tag);
  void end() const;

  graft_stream stream_ = nullptr;
  uint32_t tag_ = 0;
  int64_t start_ns_ = 0;
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_STREAM_TRACE_H_
