// drivers/opencl/kernel/kernel.h: launches kernels.
#ifndef GRAFT_DRIVERS_OPENCL_KERNEL_KERNEL_H_
#define GRAFT_DRIVERS_OPENCL_KERNEL_KERNEL_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graft/driver.h"
#include "platform/api.h"
#include "stream/queue.h"

// A kernel and the arguments that it has. OpenCL's kernels hold their arguments, so a launch sets
// those that differ from the last one's and enqueues, under a lock.
struct graft_kernel_s {
  // Takes over handle.
  graft_kernel_s(graft_device device, std::string name, cl_kernel handle);
  ~graft_kernel_s();

  // The same kernel with arguments of its own, which a launch of either does not touch; null where
  // OpenCL refuses. The program lives as long as any of them.
  std::unique_ptr<graft_kernel_s> again() const;

  // What can be said against a launch without OpenCL, else OK. Thread-safe.
  graft_status check(const graft_launch& launch) const;

  // Enqueues what check() passed, on a queue of the kernel's device. Thread-safe.
  graft_status launch(graft::opencl::Queue& queue, const graft_launch& launch);

 private:
  // As set last; kind is no graft_argument_kind as long as nothing is.
  struct Argument {
    uint32_t kind = ~0u;
    uint64_t value = 0;
    uint64_t bytes = 0;
  };

  graft_status set_arguments(const graft_launch& launch);
  std::string told(uint32_t index, const graft_argument& given) const;
  graft_status refuse(cl_int code, const graft_launch& launch) const;

  struct Range;
  // How many work-items of a launch whose groups have one each go into a group. A kernel that asks
  // for no local memory cannot tell, since Graft's kernels ask for a place in the grid alone: only
  // GPU-like devices do it, unless the source has reqd_work_group_size(1, 1, 1). Items left over
  // run beside, by themselves.
  size_t bundle(const graft_launch& launch, const Range& range) const;

  const graft_device device;
  const std::string name;
  const cl_kernel handle;
  cl_uint slots = 0;       // arguments that OpenCL counts
  cl_ulong own_local = 0;  // bytes of local memory beside its arguments
  size_t most = 0;         // work-items in a group; 0: unknown
  bool alone = false;      // its source says that a group has one work-item

  std::mutex mutex;  // guards what follows
  std::vector<Argument> arguments;
  uint64_t generation = 0;  // of the memory that the arguments were set for
};

namespace graft::opencl {

// Slots of the table, see driver.h.
struct KernelSlots {
  static graft_status kernel_launch(graft_stream stream, graft_kernel kernel,
                                    const graft_launch* launch);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_KERNEL_KERNEL_H_
