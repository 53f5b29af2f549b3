// tests/emulated/veda/request/profiler.h: the callback of the profiler and the records that it
// gets.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_PROFILER_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_PROFILER_H_

#include <memory>

#include "drivers/veda/api.h"

namespace emulated {

// One request, as the callback sees it at each of its events.
struct ProfileRecord {
  VEDAprofiler_callback callback;
  union {
    VEDAprofiler_data head;
    VEDAprofiler_vedaMemcpy copy;
    VEDAprofiler_vedaLaunchKernel kernel;
    VEDAprofiler_vedaLaunchHostFunc host_function;
    VEDAprofiler_vedaMemAlloc allocation;
    VEDAprofiler_vedaMemFree release;
  };

  void tell(VEDAprofiler_event event) { callback(&head, event); }
};

// A record with its head filled in; null if no callback is set.
std::shared_ptr<ProfileRecord> profile(VEDAprofiler_type type, int device, int stream);

// As profile, with the arguments of a copy, a launch, a host function, an allocation, a free.
std::shared_ptr<ProfileRecord> profile_copy(VEDAprofiler_type type, int device, int stream,
                                            const void* to, const void* from, size_t bytes);
std::shared_ptr<ProfileRecord> profile_kernel(int device, int stream, VEDAfunction function);
std::shared_ptr<ProfileRecord> profile_host_function(int device, int stream, void* function);
std::shared_ptr<ProfileRecord> profile_allocation(VEDAprofiler_type type, int device, int stream,
                                                  size_t bytes);
std::shared_ptr<ProfileRecord> profile_release(VEDAprofiler_type type, int device, int stream,
                                               void* pointer);

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_PROFILER_H_
