// tests/drivers/opencl/fake_icd_entry.cpp: what an ICD loader asks of the fake ICD.
#include <cstring>
#include <mutex>

#include "fake_icd_call.h"

// What every handle of an ICD begins with.
struct _cl_platform_id {
  cl_icd_dispatch* dispatch;
};

namespace graft::fake_cl {
namespace {

// From here on the loader calls the fake for every handle that PoCL ever makes.
void take_over(cl_icd_dispatch* table) {
#define GRAFT_FAKE_WRITE(name) table->cl##name = Call<&Api::name>::run;
  GRAFT_CL_FUNCTIONS(GRAFT_FAKE_WRITE, GRAFT_FAKE_WRITE)
#undef GRAFT_FAKE_WRITE
}

cl_int CL_API_CALL platforms_of_icd(cl_uint room, cl_platform_id* out, cl_uint* count) {
  static std::once_flag once;
  std::call_once(once, [] {
    real();
    take_over(base_platform()->dispatch);
  });
  return Call<&Api::GetPlatformIDs>::run(room, out, count);
}

}  // namespace
}  // namespace graft::fake_cl

extern "C" __attribute__((visibility("default"))) void* CL_API_CALL
clGetExtensionFunctionAddress(const char* name) {
  using graft::fake_cl::Api;
  using graft::fake_cl::Call;
  if (std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0) {
    return reinterpret_cast<void*>(graft::fake_cl::platforms_of_icd);
  }
  if (std::strcmp(name, "clGetPlatformInfo") == 0) {
    return reinterpret_cast<void*>(Call<&Api::GetPlatformInfo>::run);
  }
  return graft::fake_cl::extension_function(name);
}
