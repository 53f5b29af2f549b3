// drivers/opencl/svm_memory.cpp: shared virtual memory of OpenCL 2.0, fine- or coarse-grained.
#include "memory.h"

namespace graft::opencl {
namespace {

void* pointer(graft_address address) { return reinterpret_cast<void*>(address); }

class SvmMemory final : public Memory {
 public:
  SvmMemory(const MemorySource& source, bool fine) : Memory(source), fine_(fine) {}

  cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                cl_event* event) override {
    return cl().EnqueueSVMMemcpy(queue, CL_FALSE, pointer(to), from, bytes, 0, nullptr, event);
  }
  cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                  cl_event* event) override {
    return cl().EnqueueSVMMemcpy(queue, CL_FALSE, to, pointer(from), bytes, 0, nullptr, event);
  }
  cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
              cl_event* event) override {
    return upload(queue, to, pointer(from), bytes, event);
  }
  cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t width, cl_event* event) override {
    return cl().EnqueueSVMMemFill(queue, pointer(to), pattern, width, bytes, 0, nullptr, event);
  }
  cl_int set_argument(cl_kernel kernel, cl_uint index, graft_address address) override {
    return cl().SetKernelArgSVMPointer(kernel, index, pointer(address));
  }
  cl_int announce(cl_kernel kernel) override {
    return announce_all(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS);
  }
  void* host_view(graft_address address) const override {
    return fine_ ? pointer(address) : nullptr;
  }

 protected:
  cl_int acquire(uint64_t bytes, graft_address* out, Piece*) override {
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | (fine_ ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0);
    *out = reinterpret_cast<graft_address>(cl().SVMAlloc(context_, flags, bytes, 0));
    return *out != 0 ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  }
  void release(graft_address address, const Piece&) override {
    cl().SVMFree(context_, pointer(address));
  }

 private:
  const bool fine_;
};

}  // namespace

std::unique_ptr<Memory> make_svm_memory(const MemorySource& source, bool fine) {
  return std::make_unique<SvmMemory>(source, fine);
}

}  // namespace graft::opencl
