// drivers/opencl/memory/buffer_memory.cpp: buffers, whose addresses are the driver's own or the
// device's.
#include "memory.h"

namespace graft::opencl {
namespace {

class BufferMemory : public Memory {
 public:
  explicit BufferMemory(const MemorySource& source) : Memory(source) {}

  cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                cl_event* event) override {
    const Allocations::Place place = at(to);
    return cl().EnqueueWriteBuffer(queue, place.handle, CL_FALSE, place.offset, bytes, from, 0,
                                   nullptr, event);
  }
  cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                  cl_event* event) override {
    const Allocations::Place place = at(from);
    return cl().EnqueueReadBuffer(queue, place.handle, CL_FALSE, place.offset, bytes, to, 0,
                                  nullptr, event);
  }
  cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
              cl_event* event) override {
    const Allocations::Place target = at(to), source = at(from);
    return cl().EnqueueCopyBuffer(queue, source.handle, target.handle, source.offset, target.offset,
                                  bytes, 0, nullptr, event);
  }
  cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t width, cl_event* event) override {
    const Allocations::Place place = at(to);
    return cl().EnqueueFillBuffer(queue, place.handle, pattern, width, place.offset, bytes, 0,
                                  nullptr, event);
  }
  cl_uint arguments_per_address() const override { return 2; }
  cl_int announce(cl_kernel) override { return CL_SUCCESS; }

 protected:
  cl_int set_address(cl_kernel kernel, cl_uint index, graft_address address) override {
    const Allocations::Place place = at(address);
    if (place.handle == nullptr) return CL_INVALID_ARG_VALUE;
    const cl_int code = cl().SetKernelArg(kernel, index, sizeof(cl_mem), &place.handle);
    if (code != CL_SUCCESS) return code;
    return cl().SetKernelArg(kernel, index + 1, sizeof place.offset, &place.offset);
  }
  cl_int acquire(uint64_t bytes, graft_address*, cl_mem* buffer) override {
    return create(bytes, nullptr, buffer);
  }
  void release(graft_address, cl_mem buffer) override { cl().ReleaseMemObject(buffer); }

  // A buffer that the device has really given: many give it at the first use only. That is a byte
  // here, for there are runtimes that move a whole buffer where it is migrated.
  cl_int create(uint64_t bytes, const cl_mem_properties* properties, cl_mem* buffer) {
    cl_int code = CL_SUCCESS;
    *buffer = properties == nullptr
                  ? cl().CreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code)
                  : cl().CreateBufferWithProperties(context_, properties, CL_MEM_READ_WRITE, bytes,
                                                    nullptr, &code);
    if (code != CL_SUCCESS) return code;
    const char zero = 0;
    code = cl().EnqueueFillBuffer(queue_, *buffer, &zero, 1, 0, 1, 0, nullptr, nullptr);
    if (code == CL_SUCCESS) code = cl().Finish(queue_);
    if (code != CL_SUCCESS) cl().ReleaseMemObject(*buffer);
    return code;
  }

 private:
  Allocations::Place at(graft_address address) const {
    return find(address, 0).value_or(Allocations::Place{});
  }
};

class AddressMemory final : public BufferMemory {
 public:
  explicit AddressMemory(const MemorySource& source) : BufferMemory(source) {
    set_ = reinterpret_cast<decltype(set_)>(cl().GetExtensionFunctionAddressForPlatform(
        source.listed.platform, "clSetKernelArgDevicePointerEXT"));
  }

  cl_uint arguments_per_address() const override { return 1; }
  cl_int announce(cl_kernel kernel) override {
    return announce_all(kernel, CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT);
  }

 protected:
  cl_int set_address(cl_kernel kernel, cl_uint index, graft_address address) override {
    return set_(kernel, index, address);
  }
  cl_int acquire(uint64_t bytes, graft_address* out, cl_mem* buffer) override {
    const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
    cl_int code = create(bytes, properties, buffer);
    if (code != CL_SUCCESS) return code;
    cl_ulong address = 0;
    code = cl().GetMemObjectInfo(*buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address, &address,
                                 nullptr);
    if (code != CL_SUCCESS) cl().ReleaseMemObject(*buffer);
    *out = address;
    return code;
  }

 private:
  cl_int(CL_API_CALL* set_)(cl_kernel kernel, cl_uint index, cl_ulong address);
};

}  // namespace

std::unique_ptr<Memory> make_buffer_memory(const MemorySource& source) {
  return std::make_unique<BufferMemory>(source);
}

std::unique_ptr<Memory> make_address_memory(const MemorySource& source) {
  return std::make_unique<AddressMemory>(source);
}

}  // namespace graft::opencl
