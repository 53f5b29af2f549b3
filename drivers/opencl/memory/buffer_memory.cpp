// drivers/opencl/memory/buffer_memory.cpp: buffers, whose addresses are the driver's own or the
// device's.
#include <sys/mman.h>

#include "memory.h"

namespace graft::opencl {
namespace {

// Between two allocations, so that the address behind one is never the next one's first.
constexpr uint64_t kGap = 4096;

class BufferMemory : public Memory {
 public:
  explicit BufferMemory(const MemorySource& source) : Memory(source) {}

  cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                cl_event* event) override {
    const Place place = at(to);
    return cl().EnqueueWriteBuffer(queue, place.buffer, CL_FALSE, place.offset, bytes, from, 0,
                                   nullptr, event);
  }
  cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                  cl_event* event) override {
    const Place place = at(from);
    return cl().EnqueueReadBuffer(queue, place.buffer, CL_FALSE, place.offset, bytes, to, 0,
                                  nullptr, event);
  }
  cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
              cl_event* event) override {
    const Place target = at(to), source = at(from);
    return cl().EnqueueCopyBuffer(queue, source.buffer, target.buffer, source.offset, target.offset,
                                  bytes, 0, nullptr, event);
  }
  cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t width, cl_event* event) override {
    const Place place = at(to);
    return cl().EnqueueFillBuffer(queue, place.buffer, pattern, width, place.offset, bytes, 0,
                                  nullptr, event);
  }
  cl_uint arguments_per_address() const override { return 2; }
  cl_int announce(cl_kernel) override { return CL_SUCCESS; }

 protected:
  cl_int set_address(cl_kernel kernel, cl_uint index, graft_address address) override {
    const Place place = at(address);
    if (place.buffer == nullptr) return CL_INVALID_ARG_VALUE;
    const cl_int code = cl().SetKernelArg(kernel, index, sizeof(cl_mem), &place.buffer);
    if (code != CL_SUCCESS) return code;
    return cl().SetKernelArg(kernel, index + 1, sizeof place.offset, &place.offset);
  }
  cl_int acquire(uint64_t bytes, graft_address* out, Piece* piece) override {
    const cl_int code = create(bytes, nullptr, piece);
    if (code != CL_SUCCESS) return code;
    void* range =
        mmap(nullptr, bytes + kGap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
      cl().ReleaseMemObject(piece->buffer);
      return CL_OUT_OF_HOST_MEMORY;
    }
    *out = reinterpret_cast<graft_address>(range);
    return CL_SUCCESS;
  }
  void release(graft_address address, const Piece& piece) override {
    cl().ReleaseMemObject(piece.buffer);
    munmap(reinterpret_cast<void*>(address), piece.bytes + kGap);
  }

  // A buffer that the device has really given: many give it at the first use only. That is a byte
  // here, for there are runtimes that move a whole buffer where it is migrated.
  cl_int create(uint64_t bytes, const cl_mem_properties* properties, Piece* piece) {
    cl_int code = CL_SUCCESS;
    piece->buffer = properties == nullptr
                        ? cl().CreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code)
                        : cl().CreateBufferWithProperties(context_, properties, CL_MEM_READ_WRITE,
                                                          bytes, nullptr, &code);
    if (code != CL_SUCCESS) return code;
    const char zero = 0;
    code = cl().EnqueueFillBuffer(queue_, piece->buffer, &zero, 1, 0, 1, 0, nullptr, nullptr);
    if (code == CL_SUCCESS) code = cl().Finish(queue_);
    if (code != CL_SUCCESS) cl().ReleaseMemObject(piece->buffer);
    return code;
  }

 private:
  struct Place {
    cl_mem buffer = nullptr;
    cl_ulong offset = 0;
  };

  Place at(graft_address address) const {
    Piece piece;
    uint64_t offset = 0;
    if (!find(address, 0, &piece, &offset)) return {};
    return {piece.buffer, offset};
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
  cl_int acquire(uint64_t bytes, graft_address* out, Piece* piece) override {
    const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
    cl_int code = create(bytes, properties, piece);
    if (code != CL_SUCCESS) return code;
    cl_ulong address = 0;
    code = cl().GetMemObjectInfo(piece->buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address, &address,
                                 nullptr);
    if (code != CL_SUCCESS) cl().ReleaseMemObject(piece->buffer);
    *out = address;
    return code;
  }
  void release(graft_address, const Piece& piece) override { cl().ReleaseMemObject(piece.buffer); }

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
