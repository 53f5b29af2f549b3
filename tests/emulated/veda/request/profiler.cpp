// tests/emulated/veda/request/profiler.cpp: the callback of the profiler and the records that it
// gets.
#include "tests/emulated/veda/request/profiler.h"

#include <atomic>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

std::atomic<VEDAprofiler_callback> current_callback{nullptr};
std::atomic<uint64_t> requests{0};

const char* type_name(VEDAprofiler_type type, VEDAstream stream) {
  switch (type) {
    case VEDA_PROFILER_MEM_ALLOC:
      return "vedaMemAlloc";
    case VEDA_PROFILER_MEM_FREE:
      return "vedaMemFree";
    case VEDA_PROFILER_MEM_CPY_HTOD:
      return "vedaMemcpyHtoD";
    case VEDA_PROFILER_MEM_CPY_DTOH:
      return "vedaMemcpyDtoH";
    case VEDA_PROFILER_LAUNCH_KERNEL:
      return "vedaLaunchKernel";
    case VEDA_PROFILER_LAUNCH_HOST:
      return "vedaLaunchHostFunc";
    case VEDA_PROFILER_HMEM_CPY:
      return "vedaHMemcpy";
    case VEDA_PROFILER_HMEM_ALLOC:
      return "vedaHMemAlloc";
    case VEDA_PROFILER_HMEM_FREE:
      return "vedaHMemFree";
    case VEDA_PROFILER_SYNC:
      return stream >= 0 ? "vedaStreamSynchronize" : "vedaCtxSynchronize";
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<ProfileRecord> profile(VEDAprofiler_type type, int device, int stream) {
  const VEDAprofiler_callback callback = current_callback.load();
  if (callback == nullptr) return nullptr;
  auto record = std::make_shared<ProfileRecord>();
  record->callback = callback;
  record->head = {type, device, stream, requests++, nullptr};
  return record;
}

std::shared_ptr<ProfileRecord> profile_copy(VEDAprofiler_type type, int device, int stream,
                                            const void* to, const void* from, size_t bytes) {
  auto record = profile(type, device, stream);
  if (record) record->copy = {record->head, const_cast<void*>(to), const_cast<void*>(from), bytes};
  return record;
}

std::shared_ptr<ProfileRecord> profile_kernel(int device, int stream, VEDAfunction function) {
  auto record = profile(VEDA_PROFILER_LAUNCH_KERNEL, device, stream);
  void* raw = reinterpret_cast<void*>(function.ptr);
  if (record) record->kernel = {record->head, raw, function.kernel};
  return record;
}

std::shared_ptr<ProfileRecord> profile_host_function(int device, int stream, void* function) {
  auto record = profile(VEDA_PROFILER_LAUNCH_HOST, device, stream);
  if (record) record->host_function = {record->head, function};
  return record;
}

std::shared_ptr<ProfileRecord> profile_allocation(VEDAprofiler_type type, int device, int stream,
                                                  size_t bytes) {
  auto record = profile(type, device, stream);
  if (record) record->allocation = {record->head, bytes};
  return record;
}

std::shared_ptr<ProfileRecord> profile_release(VEDAprofiler_type type, int device, int stream,
                                               void* pointer) {
  auto record = profile(type, device, stream);
  if (record) record->release = {record->head, pointer};
  return record;
}

}  // namespace emulated

using emulated::current_callback;
using emulated::entry;
using emulated::require;

VEDAresult vedaProfilerSetCallback(VEDAprofiler_callback callback) {
  return entry("ProfilerSetCallback", false, [&] {
    VEDAprofiler_callback none = nullptr;
    if (callback == nullptr) {
      current_callback.store(nullptr);
    } else {
      require(current_callback.compare_exchange_strong(none, callback),
              VEDA_ERROR_CALLBACK_ALREADY_REGISTERED);
    }
  });
}

VEDAresult vedaProfilerGetCallback(VEDAprofiler_callback* callback) {
  return entry("ProfilerGetCallback", false, [&] {
    require(callback != nullptr, VEDA_ERROR_INVALID_ARGS);
    *callback = current_callback.load();
  });
}

VEDAresult vedaProfilerTypeName(VEDAprofiler_type type, const char** name,
                                const VEDAstream stream) {
  return entry("ProfilerTypeName", false, [&] {
    require(name != nullptr, VEDA_ERROR_INVALID_ARGS);
    *name = emulated::type_name(type, stream);
    require(*name != nullptr, VEDA_ERROR_INVALID_ARGS);
  });
}
