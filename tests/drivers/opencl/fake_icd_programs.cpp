// tests/drivers/opencl/fake_icd_programs.cpp: programs with sub-groups, builds that are slow, old,
// long-winded or missing.
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

// What a device with sub-groups has of itself. Every exchange passes the values of the whole group
// through local memory.
std::string sub_groups_of(uint64_t size) {
  return "#define cl_khr_subgroups 1\n#define cl_khr_subgroup_shuffle 1\n#define FAKE_SIZE " +
         std::to_string(size) + R"(
#define get_sub_group_size() ((uint)FAKE_SIZE)
#define get_sub_group_local_id() ((uint)get_local_id(0) % FAKE_SIZE)
#define get_sub_group_id() ((uint)get_local_id(0) / FAKE_SIZE)
#define FAKE_VALUE(type, place) (*(__local type*)&fake_values[place])
#define FAKE_TYPE(value) __typeof__(+(value))
#define sub_group_shuffle_xor(value, mask) ({ \
  const FAKE_TYPE(value) fake_mine = (value); \
  barrier(CLK_LOCAL_MEM_FENCE); \
  FAKE_VALUE(FAKE_TYPE(value), get_local_id(0)) = fake_mine; \
  barrier(CLK_LOCAL_MEM_FENCE); \
  const FAKE_TYPE(value) fake_other = FAKE_VALUE(FAKE_TYPE(value), get_local_id(0) ^ (mask)); \
  fake_other; })
)";
}

// The program with sub-groups, where it exchanges values.
std::string with_sub_groups(std::string text, uint64_t size) {
  if (text.find("graft_shuffle(") == std::string::npos) return text;
  for (size_t at = text.find("__kernel"); at != std::string::npos; at = text.find("__kernel", at)) {
    at = text.find('{', at) + 1;
    text.insert(at, " __local ulong fake_values[1024]; ");
  }
  return sub_groups_of(size) + text;
}

}  // namespace

cl_program behave(Tag<&Api::CreateProgramWithSource>, cl_context context, cl_uint count,
                  const char** texts, const size_t* bytes, cl_int* code) {
  if (plan().sub_groups == 0) {
    return real().CreateProgramWithSource(context, count, texts, bytes, code);
  }
  std::string whole;
  for (cl_uint i = 0; i < count; ++i) {
    const bool measured = bytes != nullptr && bytes[i] != 0;
    whole += measured ? std::string(texts[i], bytes[i]) : std::string(texts[i]);
  }
  whole = with_sub_groups(whole, plan().sub_groups);
  const char* text = whole.c_str();
  return real().CreateProgramWithSource(context, 1, &text, nullptr, code);
}

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
