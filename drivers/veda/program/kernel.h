// drivers/veda/program/kernel.h: kernels and their launch.
#ifndef GRAFT_DRIVERS_VEDA_PROGRAM_KERNEL_H_
#define GRAFT_DRIVERS_VEDA_PROGRAM_KERNEL_H_

#include <cstdint>
#include <string>

#include "api.h"
#include "graft/driver.h"

// A function of dialect "c", see the end of driver.h.
struct graft_kernel_s {
  const graft_device device;
  const std::string name;
  const uint64_t function;   // where it is in the device's memory
  const VEDAfunction entry;  // of its program, which calls it
};

namespace graft::veda {

// Slots of the table, see driver.h.
struct KernelSlots {
  static graft_status kernel_launch(graft_stream stream, graft_kernel kernel,
                                    const graft_launch* launch);
};

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_PROGRAM_KERNEL_H_
