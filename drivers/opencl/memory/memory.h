// drivers/opencl/memory/memory.h: memory of one device, behind which OpenCL's kinds of it differ.
#ifndef GRAFT_DRIVERS_OPENCL_MEMORY_MEMORY_H_
#define GRAFT_DRIVERS_OPENCL_MEMORY_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "graft/driver.h"
#include "graft/driver_memory.h"
#include "platform/api.h"
#include "platform/catalog.h"

namespace graft::opencl {

// What a kind of memory is made from. The queue is the device's own, for what is done at once.
struct MemorySource {
  const Listed& listed;
  cl_context context;
  cl_command_queue queue;
};

// Allocations with their buffers, null for the kinds that have none.
using Allocations = AddressSpace<cl_mem>;

// Bytes behind an argument that is null: NVIDIA's runtime launches no kernel with a null one.
constexpr uint64_t kNothing = 16;

// Calls return OpenCL's code. Those that enqueue write *event, which the caller owns. Thread-safe.
class Memory {
 public:
  // close() comes before it is destroyed.
  static std::unique_ptr<Memory> make(const MemorySource& source);
  virtual ~Memory() = default;

  // Gives back what make took for arguments that are null.
  void close();

  // Slots memory_allocate and memory_free, and the bytes between both.
  graft_status allocate(uint64_t bytes, graft_address* out);
  graft_status free(graft_address address);
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }

  // Where the range is; nothing if it does not lie inside one allocation.
  std::optional<Allocations::Place> find(graft_address address, uint64_t bytes) const {
    return allocations_.find(address, bytes);
  }

  // Addresses are inside one allocation. fill: address and bytes are multiples of width.
  virtual cl_int upload(cl_command_queue queue, graft_address to, const void* from, uint64_t bytes,
                        cl_event* event) = 0;
  virtual cl_int download(cl_command_queue queue, void* to, graft_address from, uint64_t bytes,
                          cl_event* event) = 0;
  virtual cl_int copy(cl_command_queue queue, graft_address to, graft_address from, uint64_t bytes,
                      cl_event* event) = 0;
  virtual cl_int fill(cl_command_queue queue, graft_address to, uint64_t bytes, const void* pattern,
                      uint32_t width, cl_event* event) = 0;

  // Sets an address, or 0 for what the kernel does not touch, as the arguments of a kernel from
  // index on; as many as it takes.
  cl_int set_argument(cl_kernel kernel, cl_uint index, graft_address address) {
    return set_address(kernel, index, address != 0 ? address : nothing_);
  }
  virtual cl_uint arguments_per_address() const { return 1; }

  // Tells that the kernel may load any address from memory. Again whenever generation() changed.
  virtual cl_int announce(cl_kernel kernel) = 0;

  // Changes with each allocation: arguments set before may mean another buffer.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // What the host may touch; null where it may not.
  virtual void* host_view(graft_address) const { return nullptr; }

 protected:
  explicit Memory(const MemorySource& source)
      : context_(source.context),
        queue_(source.queue),
        limits_(source.listed.capabilities.properties) {}

  virtual cl_int set_address(cl_kernel kernel, cl_uint index, graft_address address) = 0;
  // Fills in the address, the buffer or both; neither if the device is out of memory. A buffer
  // without an address gets one of the process.
  virtual cl_int acquire(uint64_t bytes, graft_address* out, cl_mem* buffer) = 0;
  virtual void release(graft_address address, cl_mem buffer) = 0;

  // Sets a kernel's list of allocations, under a name of clSetKernelExecInfo.
  cl_int announce_all(cl_kernel kernel, cl_kernel_exec_info list) const;

  const cl_context context_;
  const cl_command_queue queue_;

 private:
  // acquire, and an address in any case; 0 if there is none.
  cl_int acquire_addressed(uint64_t bytes, graft_address* out);
  void take_nothing();

  const graft_device_properties& limits_;
  graft_address nothing_ = 0;  // 0: the device had no room for it
  Allocations allocations_;
  std::atomic<uint64_t> held_{0}, generation_{1};
};

std::unique_ptr<Memory> make_svm_memory(const MemorySource& source, bool fine);
std::unique_ptr<Memory> make_unified_memory(const MemorySource& source);
std::unique_ptr<Memory> make_buffer_memory(const MemorySource& source);
std::unique_ptr<Memory> make_address_memory(const MemorySource& source);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_MEMORY_MEMORY_H_
