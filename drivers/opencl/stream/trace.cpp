// drivers/opencl/stream/trace.cpp: tells a profiler when the device ran each command
// (graft.profiler).
#include "trace.h"

#include <chrono>
#include <cstring>
#include <string>

#include "graft/driver_slot.h"
#include "platform/device.h"
#include "settings.h"

namespace graft::opencl {
namespace {

int64_t now_ns() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

bool time_of(cl_event event, cl_profiling_info which, int64_t* out_ns) {
  cl_ulong ns = 0;
  const cl_int code = cl().GetEventProfilingInfo(event, which, sizeof ns, &ns, nullptr);
  *out_ns = int64_t(ns);
  return code == CL_SUCCESS;
}

// From some markers the one that the host saw end the soonest: the device's clock against its own.
// A busy machine needs more of them.
cl_int match_clocks(graft_device device, int64_t* out_offset_ns) {
  constexpr int kFewest = 5, kMost = 100;
  constexpr int64_t kGood = 400'000;
  int64_t best = INT64_MAX;
  for (int i = 0; i < kFewest || (i < kMost && best > kGood); ++i) {
    cl_event event = nullptr;
    const int64_t begin = now_ns();
    cl_int code = cl().EnqueueMarkerWithWaitList(device->queue, 0, nullptr, &event);
    if (code != CL_SUCCESS) return code;
    code = cl().WaitForEvents(1, &event);
    const int64_t end = now_ns();
    int64_t at = 0;
    if (code == CL_SUCCESS && !time_of(event, CL_PROFILING_COMMAND_END, &at)) {
      code = CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    cl().ReleaseEvent(event);
    if (code != CL_SUCCESS) return code;
    if (end - begin < best) *out_offset_ns = begin + (end - begin) / 2 - at;
    best = std::min(best, end - begin);
  }
  return CL_SUCCESS;
}

}  // namespace

graft_status ProfilerSlots::trace_start(graft_device device, graft_emit_trace emit, void* context) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (emit == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "trace_start: no function given");
  if (!settings().profiling) {
    return fail(GRAFT_UNSUPPORTED, "trace_start: GRAFT_OPENCL_PROFILING=0 switches times off");
  }
  int64_t offset_ns = 0;
  const cl_int code = match_clocks(device, &offset_ns);
  if (code != CL_SUCCESS) return device->failed(code, "trace_start", GRAFT_INTERNAL);
  if (device->trace.start(emit, context, offset_ns)) return GRAFT_OK;
  return fail(GRAFT_BUSY, "trace_start: the device is already traced");
}

graft_status ProfilerSlots::trace_stop(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "trace_stop: no device given");
  device->trace.stop();
  return GRAFT_OK;
}

bool Trace::start(graft_emit_trace emit, void* context, int64_t offset_ns) {
  std::lock_guard lock(mutex_);
  if (emit_ != nullptr) return false;
  emit_ = emit;
  context_ = context;
  offset_ns_ = offset_ns;
  active_.store(true);
  return true;
}

void Trace::stop() {
  std::lock_guard lock(mutex_);
  active_.store(false);
  emit_ = nullptr;
}

void Trace::add(cl_event event, uint32_t tag, graft_stream stream) {
  graft_trace_event told = {sizeof told, tag, stream, 0, 0, nullptr};
  if (!time_of(event, CL_PROFILING_COMMAND_START, &told.start_ns) ||
      !time_of(event, CL_PROFILING_COMMAND_END, &told.end_ns)) {
    return;
  }
  std::lock_guard lock(mutex_);
  if (emit_ == nullptr) return;
  told.start_ns += offset_ns_;
  told.end_ns += offset_ns_;
  emit_(context_, &told, 1);
}

}  // namespace graft::opencl
