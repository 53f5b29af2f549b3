// tests/drivers/opencl/fake_icd_info.cpp: what the platform and its devices say of themselves.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

template <class Value>
cl_int value(Value v, size_t room, void* out, size_t* bytes) {
  return answer(&v, sizeof v, room, out, bytes);
}

std::string text_of(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (real().GetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS) return "";
  std::string text(bytes, '\0');
  real().GetDeviceInfo(device, what, bytes, text.data(), nullptr);
  text.resize(text.find('\0'));
  return text;
}

std::string extensions_of(cl_device_id device) {
  std::string text = " " + text_of(device, CL_DEVICE_EXTENSIONS) + " ";
  auto drop = [&](bool asked, const std::string& word) {
    const size_t at = text.find(" " + word + " ");
    if (asked && at != std::string::npos) text.erase(at, word.size() + 1);
  };
  const Plan& p = plan();
  drop(p.no_fp64, "cl_khr_fp64");
  drop(p.no_fp16, "cl_khr_fp16");
  drop(p.no_int64_atomics, "cl_khr_int64_base_atomics");
  drop(p.no_int64_atomics, "cl_khr_int64_extended_atomics");
  if (p.usm) text += "cl_intel_unified_shared_memory ";
  if (p.sub_groups != 0) text += "cl_khr_subgroups cl_khr_subgroup_shuffle ";
  if (p.address) text += "cl_ext_buffer_device_address ";
  return text.substr(1);
}

cl_device_svm_capabilities svm_of(cl_device_id device) {
  cl_device_svm_capabilities can = 0;
  real().GetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, nullptr);
  if (plan().no_svm) return 0;
  return plan().coarse_svm ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : can;
}

std::vector<cl_device_id> devices() {
  cl_uint count = 0;
  real().GetDeviceIDs(base_platform(), CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  std::vector<cl_device_id> all(count);
  if (count != 0) {
    real().GetDeviceIDs(base_platform(), CL_DEVICE_TYPE_ALL, count, all.data(), nullptr);
  }
  return all;
}

bool is_gpu(cl_device_id device) {
  const auto all = devices();
  const int64_t index = std::find(all.begin(), all.end(), device) - all.begin();
  return index == plan().gpu;
}

// What OpenCL 1.2 has no name for.
bool is_younger(cl_device_info what) {
  return what == CL_DEVICE_SVM_CAPABILITIES || what == CL_DEVICE_OPENCL_C_ALL_VERSIONS ||
         what == CL_DEVICE_NUMERIC_VERSION || what == CL_DEVICE_OPENCL_C_FEATURES ||
         what == CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE ||
         what == CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES || what == CL_DEVICE_MAX_NUM_SUB_GROUPS;
}

std::string version_text(const char* before) {
  return before + std::to_string(plan().major) + "." + std::to_string(plan().minor) + " fake";
}

}  // namespace

cl_int answer(const void* value, size_t size, size_t room, void* out, size_t* bytes) {
  if (bytes != nullptr) *bytes = size;
  if (out == nullptr) return CL_SUCCESS;
  if (room < size) return CL_INVALID_VALUE;
  std::memcpy(out, value, size);
  return CL_SUCCESS;
}

cl_int answer(const std::string& text, size_t room, void* out, size_t* bytes) {
  return answer(text.c_str(), text.size() + 1, room, out, bytes);
}

cl_int behave(Tag<&Api::GetPlatformIDs>, cl_uint room, cl_platform_id* out, cl_uint* count) {
  std::vector<cl_platform_id> all;
  if (plan().broken_platform) all.push_back(broken_platform());
  all.push_back(base_platform());
  if (count != nullptr) *count = cl_uint(all.size());
  if (out != nullptr) std::copy_n(all.begin(), std::min<size_t>(room, all.size()), out);
  return CL_SUCCESS;
}

cl_int behave(Tag<&Api::GetPlatformInfo>, cl_platform_id platform, cl_platform_info what,
              size_t room, void* out, size_t* bytes) {
  const bool broken = platform == broken_platform();
  if (what == CL_PLATFORM_NAME) return answer(broken ? "broken" : "fake", room, out, bytes);
  if (what == CL_PLATFORM_ICD_SUFFIX_KHR) return answer("FAKE", room, out, bytes);
  if (what == CL_PLATFORM_VERSION && plan().old) {
    return answer(version_text("OpenCL "), room, out, bytes);
  }
  return real().GetPlatformInfo(base_platform(), what, room, out, bytes);
}

cl_int behave(Tag<&Api::GetDeviceIDs>, cl_platform_id platform, cl_device_type type, cl_uint room,
              cl_device_id* out, cl_uint* count) {
  if (platform == broken_platform()) return CL_OUT_OF_HOST_MEMORY;
  if (plan().no_devices) return CL_DEVICE_NOT_FOUND;
  return real().GetDeviceIDs(platform, type, room, out, count);
}

cl_int behave(Tag<&Api::GetDeviceInfo>, cl_device_id device, cl_device_info what, size_t room,
              void* out, size_t* bytes) {
  const Plan& p = plan();
  if (p.major < 2 && is_younger(what)) return CL_INVALID_VALUE;
  switch (what) {
    case CL_DEVICE_EXTENSIONS:
      return answer(extensions_of(device), room, out, bytes);
    case CL_DEVICE_SVM_CAPABILITIES:
      return value(svm_of(device), room, out, bytes);
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
      if (p.usm) return value<cl_bitfield>(CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL, room, out, bytes);
      break;
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      if (p.no_fp64) return value(cl_device_fp_config{0}, room, out, bytes);
      break;
    case CL_DEVICE_COMPILER_AVAILABLE:
      if (p.no_compiler) return value(cl_bool{CL_FALSE}, room, out, bytes);
      break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      if (p.alloc_limit != 0) return value(cl_ulong{p.alloc_limit}, room, out, bytes);
      break;
    case CL_DEVICE_GLOBAL_MEM_SIZE:
      if (p.memory != 0) return value(cl_ulong{p.memory}, room, out, bytes);
      break;
    case CL_DEVICE_MAX_PARAMETER_SIZE:
      if (p.parameters != 0) return value(size_t{p.parameters}, room, out, bytes);
      break;
    case CL_DEVICE_VERSION:
      if (p.old) return answer(version_text("OpenCL "), room, out, bytes);
      break;
    case CL_DEVICE_OPENCL_C_VERSION:
      if (p.old) return answer(version_text("OpenCL C "), room, out, bytes);
      break;
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS:
      if (p.old && p.major < 3) return CL_INVALID_VALUE;
      break;
    case CL_DEVICE_TYPE:
      if (is_gpu(device)) return value<cl_device_type>(CL_DEVICE_TYPE_GPU, room, out, bytes);
      break;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      if (is_gpu(device)) return value(cl_bool{CL_FALSE}, room, out, bytes);
      break;
    default:
      break;
  }
  return real().GetDeviceInfo(device, what, room, out, bytes);
}

}  // namespace graft::fake_cl
