// tests/drivers/opencl/fake_icd_launches.cpp: kernels that are launched with so much and no more.
#include <algorithm>
#include <map>
#include <mutex>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

// Of a plan with the word nvidia.
constexpr size_t kGroup = 256;
constexpr cl_ulong kNoLocal = 1;

struct Argument {
  size_t bytes = 0;
  bool null = false;  // a buffer or an address that is none
};

std::mutex mutex;
std::map<cl_kernel, std::map<cl_uint, Argument>>& given() {  // by kernel and argument
  static auto* const instance = new std::map<cl_kernel, std::map<cl_uint, Argument>>;
  return *instance;
}

bool watched() { return plan().parameters != 0 || plan().nvidia; }

void note(cl_kernel kernel, cl_uint index, const Argument& argument) {
  if (!watched()) return;
  std::lock_guard lock(mutex);
  given()[kernel][index] = argument;
}

template <class Value>
Value of_group(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) {
  Value value = 0;
  real().GetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, nullptr);
  return value;
}

// What this kernel may not be launched with, else CL_SUCCESS.
cl_int judge(cl_kernel kernel) {
  std::lock_guard lock(mutex);
  const auto& arguments = given()[kernel];
  size_t total = 0;
  for (const auto& [index, argument] : arguments) total += argument.bytes;
  if (plan().parameters != 0 && total > plan().parameters) return CL_OUT_OF_RESOURCES;
  if (!plan().nvidia) return CL_SUCCESS;
  cl_uint count = 0;
  real().GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  const bool null = std::any_of(arguments.begin(), arguments.end(),
                                [](const auto& pair) { return pair.second.null; });
  return null || arguments.size() < count ? CL_INVALID_KERNEL_ARGS : CL_SUCCESS;
}

}  // namespace

void note_address(cl_kernel kernel, cl_uint index, const void* address) {
  note(kernel, index, {sizeof address, address == nullptr});
}

cl_int behave(Tag<&Api::SetKernelArg>, cl_kernel kernel, cl_uint index, size_t bytes,
              const void* value) {
  // Local memory of that size looks the same; no kernel asks for it.
  const bool null = value == nullptr && bytes == sizeof(cl_mem);
  note(kernel, index, {value == nullptr ? sizeof(cl_ulong) : bytes, null});
  return real().SetKernelArg(kernel, index, bytes, value);
}

cl_int behave(Tag<&Api::ReleaseKernel>, cl_kernel kernel) {
  {
    std::lock_guard lock(mutex);
    given().erase(kernel);
  }
  return real().ReleaseKernel(kernel);
}

cl_int behave(Tag<&Api::GetKernelWorkGroupInfo>, cl_kernel kernel, cl_device_id device,
              cl_kernel_work_group_info what, size_t room, void* out, size_t* bytes) {
  if (plan().nvidia && what == CL_KERNEL_LOCAL_MEM_SIZE) {
    const auto own = std::max(kNoLocal, of_group<cl_ulong>(kernel, device, what));
    return answer(&own, sizeof own, room, out, bytes);
  }
  if (plan().nvidia && what == CL_KERNEL_WORK_GROUP_SIZE) {
    const auto group = std::min(kGroup, of_group<size_t>(kernel, device, what));
    return answer(&group, sizeof group, room, out, bytes);
  }
  return real().GetKernelWorkGroupInfo(kernel, device, what, room, out, bytes);
}

cl_int behave(Tag<&Api::EnqueueNDRangeKernel>, cl_command_queue queue, cl_kernel kernel,
              cl_uint dimensions, const size_t* offset, const size_t* global, const size_t* local,
              cl_uint count, const cl_event* list, cl_event* event) {
  const cl_int code = watched() ? judge(kernel) : CL_SUCCESS;
  if (code != CL_SUCCESS) return code;
  return real().EnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list,
                                     event);
}

}  // namespace graft::fake_cl
