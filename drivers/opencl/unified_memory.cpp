// drivers/opencl/unified_memory.cpp: device memory of cl_intel_unified_shared_memory.
#include "memory.h"

namespace graft::opencl {
namespace {

void* pointer(graft_address address) { return reinterpret_cast<void*>(address); }

template <class Function>
void find_function(cl_platform_id platform, const char* name, Function* function) {
  *function =
      reinterpret_cast<Function>(cl().GetExtensionFunctionAddressForPlatform(platform, name));
}

class UnifiedMemory final : public Memory {
 public:
  explicit UnifiedMemory(const MemorySource& source)
      : Memory(source), device_(source.listed.device) {
    const cl_platform_id platform = source.listed.platform;
    find_function(platform, "clDeviceMemAllocINTEL", &allocate_);
    find_function(platform, "clMemFreeINTEL", &free_);
    find_function(platform, "clEnqueueMemcpyINTEL", &copy_);
    find_function(platform, "clEnqueueMemFillINTEL", &fill_);
    find_function(platform, "clSetKernelArgMemPointerINTEL", &set_);
  }

  cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                cl_event* event) override {
    return copy_(queue, CL_FALSE, pointer(to), from, bytes, 0, nullptr, event);
  }
  cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                  cl_event* event) override {
    return copy_(queue, CL_FALSE, to, pointer(from), bytes, 0, nullptr, event);
  }
  cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
              cl_event* event) override {
    return upload(queue, to, pointer(from), bytes, event);
  }
  cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t width, cl_event* event) override {
    return fill_(queue, pointer(to), pattern, width, bytes, 0, nullptr, event);
  }
  cl_int set_argument(cl_kernel kernel, cl_uint index, graft_address address) override {
    return set_(kernel, index, pointer(address));
  }
  cl_int announce(cl_kernel kernel) override {
    if (cl().SetKernelExecInfo == nullptr) return CL_SUCCESS;
    const cl_bool yes = CL_TRUE;
    return cl().SetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                                  sizeof yes, &yes);
  }

 protected:
  cl_int acquire(uint64_t bytes, graft_address* out, Piece*) override {
    cl_int code = CL_SUCCESS;
    void* got = allocate_(context_, device_, nullptr, bytes, 0, &code);
    *out = reinterpret_cast<graft_address>(got);
    return code;
  }
  void release(graft_address address, const Piece&) override { free_(context_, pointer(address)); }

 private:
  const cl_device_id device_;
  clDeviceMemAllocINTEL_fn allocate_;
  clMemFreeINTEL_fn free_;
  clEnqueueMemcpyINTEL_fn copy_;
  clEnqueueMemFillINTEL_fn fill_;
  clSetKernelArgMemPointerINTEL_fn set_;
};

}  // namespace

std::unique_ptr<Memory> make_unified_memory(const MemorySource& source) {
  return std::make_unique<UnifiedMemory>(source);
}

}  // namespace graft::opencl
