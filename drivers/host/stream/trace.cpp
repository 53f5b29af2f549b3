// drivers/host/stream/trace.cpp: tells a profiler what each command of a device did:
// graft.profiler.
#include "trace.h"

#include <chrono>

#include "device.h"
#include "graft/driver_slot.h"
#include "stream.h"

namespace graft::host {
namespace {

void count_traced(int change) {
  static std::mutex mutex;
  static int traced = 0;
  std::lock_guard lock(mutex);
  traced += change;
  if (traced > 0) {
    detours.fetch_or(kDetourTraced);
  } else {
    detours.fetch_and(~uint32_t(kDetourTraced));
  }
}

int64_t now_ns() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

graft_status ProfilerSlots::trace_start(graft_device device, graft_emit_trace emit, void* context) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (emit == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "trace_start: no emit function given");
  std::lock_guard lock(device->trace.mutex);
  if (device->trace.emit != nullptr)
    return fail(GRAFT_BUSY, "trace_start: the device is already traced");
  device->trace.emit = emit;
  device->trace.context = context;
  device->trace.base_ns = now_ns() - latest_time();
  count_traced(1);
  return GRAFT_OK;
}

graft_status ProfilerSlots::trace_stop(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "trace_stop: no device given");
  std::lock_guard lock(device->trace.mutex);
  if (device->trace.emit == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "trace_stop: the device is not traced");
  device->trace.emit = nullptr;
  count_traced(-1);
  return GRAFT_OK;
}

void TracedRun::begin(graft_stream stream, uint32_t tag) {
  stream_ = stream;
  tag_ = tag;
  start_ns_ = now_ns();
}

void TracedRun::end() const {
  graft_trace_event event = {sizeof event, tag_, stream_, start_ns_, now_ns(), nullptr};
  Trace& trace = stream_->device->trace;
  std::lock_guard lock(trace.mutex);
  if (simulated()) {
    event.start_ns = trace.base_ns + stream_->clock.begun();
    event.end_ns = trace.base_ns + stream_->clock.now();
  }
  if (trace.emit != nullptr) trace.emit(trace.context, &event, 1);
}

}  // namespace graft::host
