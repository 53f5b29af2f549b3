// drivers/opencl/memory/pointer_memory.cpp: memory whose addresses are pointers: the shared virtual
// memory of OpenCL 2.0, and the device memory of cl_intel_unified_shared_memory.
#include "memory.h"

namespace graft::opencl {
namespace {

void* pointer(graft_address address) { return reinterpret_cast<void*>(address); }

// The same functions under two names.
struct Functions {
  decltype(Api::EnqueueSVMMemcpy) copy;
  decltype(Api::EnqueueSVMMemFill) fill;
  decltype(Api::SetKernelArgSVMPointer) set;
};

class PointerMemory : public Memory {
 public:
  PointerMemory(const MemorySource& source, const Functions& functions)
      : Memory(source), call_(functions) {}

  cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                cl_event* event) override {
    return call_.copy(queue, CL_FALSE, pointer(to), from, bytes, 0, nullptr, event);
  }
  cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                  cl_event* event) override {
    return call_.copy(queue, CL_FALSE, to, pointer(from), bytes, 0, nullptr, event);
  }
  cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
              cl_event* event) override {
    return upload(queue, to, pointer(from), bytes, event);
  }
  cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t width, cl_event* event) override {
    return call_.fill(queue, pointer(to), pattern, width, bytes, 0, nullptr, event);
  }

 protected:
  cl_int set_address(cl_kernel kernel, cl_uint index, graft_address address) override {
    return call_.set(kernel, index, pointer(address));
  }

 private:
  const Functions call_;
};

class SvmMemory final : public PointerMemory {
 public:
  SvmMemory(const MemorySource& source, bool fine)
      : PointerMemory(source,
                      {cl().EnqueueSVMMemcpy, cl().EnqueueSVMMemFill, cl().SetKernelArgSVMPointer}),
        fine_(fine) {}

  cl_int announce(cl_kernel kernel) override {
    return announce_all(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS);
  }
  void* host_view(graft_address address) const override {
    return fine_ ? pointer(address) : nullptr;
  }

 protected:
  cl_int acquire(uint64_t bytes, graft_address* out, cl_mem*) override {
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | (fine_ ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0);
    *out = reinterpret_cast<graft_address>(cl().SVMAlloc(context_, flags, bytes, 0));
    return *out != 0 ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  void release(graft_address address, cl_mem) override { cl().SVMFree(context_, pointer(address)); }

 private:
  const bool fine_;
};

template <class Function>
Function extension(const MemorySource& source, const char* name) {
  return reinterpret_cast<Function>(
      cl().GetExtensionFunctionAddressForPlatform(source.listed.platform, name));
}

class UnifiedMemory final : public PointerMemory {
 public:
  explicit UnifiedMemory(const MemorySource& source)
      : PointerMemory(source, {extension<clEnqueueMemcpyINTEL_fn>(source, "clEnqueueMemcpyINTEL"),
                               extension<clEnqueueMemFillINTEL_fn>(source, "clEnqueueMemFillINTEL"),
                               extension<clSetKernelArgMemPointerINTEL_fn>(
                                   source, "clSetKernelArgMemPointerINTEL")}),
        device_(source.listed.device),
        allocate_(extension<clDeviceMemAllocINTEL_fn>(source, "clDeviceMemAllocINTEL")),
        free_(extension<clMemFreeINTEL_fn>(source, "clMemFreeINTEL")) {}

  cl_int announce(cl_kernel kernel) override {
    if (cl().SetKernelExecInfo == nullptr) return CL_SUCCESS;
    const cl_bool yes = CL_TRUE;
    return cl().SetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                                  sizeof yes, &yes);
  }

 protected:
  cl_int acquire(uint64_t bytes, graft_address* out, cl_mem*) override {
    cl_int code = CL_SUCCESS;
    *out = reinterpret_cast<graft_address>(allocate_(context_, device_, nullptr, bytes, 0, &code));
    return code;
  }
  void release(graft_address address, cl_mem) override { free_(context_, pointer(address)); }

 private:
  const cl_device_id device_;
  const clDeviceMemAllocINTEL_fn allocate_;
  const clMemFreeINTEL_fn free_;
};

}  // namespace

std::unique_ptr<Memory> make_svm_memory(const MemorySource& source, bool fine) {
  return std::make_unique<SvmMemory>(source, fine);
}

std::unique_ptr<Memory> make_unified_memory(const MemorySource& source) {
  return std::make_unique<UnifiedMemory>(source);
}

}  // namespace graft::opencl
