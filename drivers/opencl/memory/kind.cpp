// drivers/opencl/memory/kind.cpp: the ways in which OpenCL devices offer memory.
#include "kind.h"

#include "platform/query.h"

namespace graft::opencl {
namespace {

bool has_function(cl_platform_id platform, const char* name) {
  return cl().GetExtensionFunctionAddressForPlatform(platform, name) != nullptr;
}

bool has_svm_functions() {
  return cl().SVMAlloc != nullptr && cl().SVMFree != nullptr && cl().EnqueueSVMMemcpy != nullptr &&
         cl().EnqueueSVMMemFill != nullptr && cl().SetKernelArgSVMPointer != nullptr &&
         cl().SetKernelExecInfo != nullptr;
}

bool has_unified(cl_platform_id platform, cl_device_id device, const std::string& extensions) {
  if (!lists(extensions, "cl_intel_unified_shared_memory")) return false;
  for (const char* name : {"clDeviceMemAllocINTEL", "clMemFreeINTEL", "clEnqueueMemcpyINTEL",
                           "clEnqueueMemFillINTEL", "clSetKernelArgMemPointerINTEL"}) {
    if (!has_function(platform, name)) return false;
  }
  const auto can = ask<cl_device_unified_shared_memory_capabilities_intel>(
      device, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, 0);
  return (can & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0;
}

bool has_address(cl_platform_id platform, const std::string& extensions, int version_major) {
  return lists(extensions, "cl_ext_buffer_device_address") && version_major >= 3 &&
         cl().CreateBufferWithProperties != nullptr && cl().SetKernelExecInfo != nullptr &&
         has_function(platform, "clSetKernelArgDevicePointerEXT");
}

}  // namespace

std::vector<MemoryKind> offered_kinds(cl_platform_id platform, cl_device_id device,
                                      const std::string& extensions, int version_major) {
  const auto svm = version_major >= 2 && has_svm_functions()
                       ? ask<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0)
                       : 0;
  const bool fine = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0;
  // Fine-grained memory of a device with memory of its own usually lies on the host's side.
  const bool near = ask<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_FALSE) != CL_FALSE;
  std::vector<MemoryKind> kinds;
  if (fine && near) kinds.push_back(MemoryKind::kFine);
  if (has_unified(platform, device, extensions)) kinds.push_back(MemoryKind::kUnified);
  if (has_address(platform, extensions, version_major)) kinds.push_back(MemoryKind::kAddress);
  if ((svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0) kinds.push_back(MemoryKind::kCoarse);
  if (fine && !near) kinds.push_back(MemoryKind::kFine);
  kinds.push_back(MemoryKind::kBuffer);
  return kinds;
}

bool choose_kind(const std::vector<MemoryKind>& offered, const std::string& wish, MemoryKind* kind,
                 std::string* problem) {
  std::string all;
  for (MemoryKind one : offered) {
    const bool shared = one == MemoryKind::kFine || one == MemoryKind::kCoarse;
    if (wish.empty() || wish == name_of(one) || (wish == "svm" && shared)) {
      *kind = one;
      return true;
    }
    all += std::string(all.empty() ? "" : ", ") + name_of(one);
  }
  *problem = "GRAFT_OPENCL_MEMORY=" + wish + " is not one of this device's kinds of memory: " + all;
  return false;
}

const char* name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kFine:
      return "svm-fine";
    case MemoryKind::kCoarse:
      return "svm-coarse";
    case MemoryKind::kUnified:
      return "usm";
    case MemoryKind::kAddress:
      return "address";
    default:
      return "buffer";
  }
}

}  // namespace graft::opencl
