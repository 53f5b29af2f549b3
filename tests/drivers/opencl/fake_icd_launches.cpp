// tests/drivers/opencl/fake_icd_launches.cpp: kernels that may have so many bytes of arguments.
#include <map>
#include <mutex>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

std::mutex mutex;
std::map<cl_kernel, std::map<cl_uint, size_t>>& given() {  // bytes by kernel and argument
  static auto* const instance = new std::map<cl_kernel, std::map<cl_uint, size_t>>;
  return *instance;
}

}  // namespace

void note_argument(cl_kernel kernel, cl_uint index, size_t bytes) {
  if (plan().parameters == 0) return;
  std::lock_guard lock(mutex);
  given()[kernel][index] = bytes;
}

cl_int behave(Tag<&Api::SetKernelArg>, cl_kernel kernel, cl_uint index, size_t bytes,
              const void* value) {
  note_argument(kernel, index, value == nullptr ? sizeof(cl_ulong) : bytes);
  return real().SetKernelArg(kernel, index, bytes, value);
}

cl_int behave(Tag<&Api::ReleaseKernel>, cl_kernel kernel) {
  {
    std::lock_guard lock(mutex);
    given().erase(kernel);
  }
  return real().ReleaseKernel(kernel);
}

cl_int behave(Tag<&Api::EnqueueNDRangeKernel>, cl_command_queue queue, cl_kernel kernel,
              cl_uint dimensions, const size_t* offset, const size_t* global, const size_t* local,
              cl_uint count, const cl_event* list, cl_event* event) {
  if (plan().parameters != 0) {
    std::lock_guard lock(mutex);
    size_t total = 0;
    for (const auto& [index, bytes] : given()[kernel]) total += bytes;
    if (total > plan().parameters) return CL_OUT_OF_RESOURCES;
  }
  return real().EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list,
                                     event);
}

}  // namespace graft::fake_cl
