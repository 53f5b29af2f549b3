// tests/drivers/opencl/fake_icd_programs.cpp: builds that are slow, old, long-winded or missing.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

bool from_source(cl_program program) {
  size_t bytes = 0;
  real().GetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &bytes);
  return bytes > 1;
}

// -cl-std=CL3.0 on a device of OpenCL C 1.2.
bool asks_for_younger(const std::string& options) {
  const size_t at = options.find("-cl-std=CL");
  int major = 0, minor = 0;
  if (at == std::string::npos) return false;
  if (std::sscanf(options.c_str() + at, "-cl-std=CL%d.%d", &major, &minor) != 2) return true;
  return major > plan().major || (major == plan().major && minor > plan().minor);
}

}  // namespace

cl_int behave(Tag<&Api::BuildProgram>, cl_program program, cl_uint count,
              const cl_device_id* devices, const char* options,
              void(CL_CALLBACK* done)(cl_program, void*), void* context) {
  if (plan().no_compiler && from_source(program)) return CL_COMPILER_NOT_AVAILABLE;
  if (plan().old && options != nullptr && asks_for_younger(options)) {
    return CL_INVALID_BUILD_OPTIONS;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(plan().slow_build_ms));
  return real().BuildProgram(program, count, devices, options, done, context);
}

cl_int behave(Tag<&Api::GetProgramBuildInfo>, cl_program program, cl_device_id device,
              cl_program_build_info what, size_t room, void* out, size_t* bytes) {
  if (what == CL_PROGRAM_BUILD_LOG && plan().long_log != 0) {
    return answer(std::string(plan().long_log, 'x'), room, out, bytes);
  }
  return real().GetProgramBuildInfo(program, device, what, room, out, bytes);
}

}  // namespace graft::fake_cl
