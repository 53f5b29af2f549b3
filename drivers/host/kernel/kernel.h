// drivers/host/kernel/kernel.h: kernels and their launch.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_KERNEL_H_
#define GRAFT_DRIVERS_HOST_KERNEL_KERNEL_H_

#include <cstdint>

#include "graft/driver.h"

// A function of dialect "c", see the end of driver.h.
struct graft_kernel_s {
  void (*function)(const graft_kernel_argument* arguments, uint64_t begin, uint64_t end);
};

namespace graft::host {

// Slots of the table, see driver.h.
struct KernelSlots {
  static graft_status kernel_launch(graft_stream stream, graft_kernel kernel,
                                    const graft_launch* launch);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_KERNEL_H_
