// driver/kernel.cpp: finds kernels and launches them.
//
// For the real chip: its launch. Dialect "c" has one-dimensional grids of single work-items; a
// GPU-like chip passes on grid, group and the local memory of GRAFT_ARGUMENT_LOCAL.
#include "kernel.h"

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include "handle.h"

namespace acme_driver {
namespace {

constexpr size_t kFew = 32;

graft_status launch_with(graft_stream stream, graft_kernel kernel, const graft_launch& launch,
                         chip_argument* arguments) {
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const graft_argument& from = launch.arguments[i];
    if (from.kind == GRAFT_ARGUMENT_LOCAL) {
      return graft::fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: the chip has no local memory");
    }
    const bool address = from.kind == GRAFT_ARGUMENT_ADDRESS;
    arguments[i] = {address ? CHIP_ADDRESS : CHIP_NUMBER, from.value, from.bytes};
  }
  return status_of(chip_launch(stream->queue.get(), kernel->entry, launch.grid[0], arguments,
                               launch.argument_count, launch.tag),
                   "kernel_launch");
}

}  // namespace

graft_status KernelSlots::kernel_find(graft_device, graft_program program, const char* name,
                                      graft_kernel* out) {
  if (program == nullptr) return graft::fail(GRAFT_NOT_FOUND, "the driver has no pack of kernels");
  const chip_kernel entry = chip_program_find(program->program.get(), name);
  if (entry == nullptr) {
    return graft::fail(GRAFT_NOT_FOUND, "the program has no kernel " + std::string(name));
  }
  const std::lock_guard lock(program->mutex);
  *out = &program->kernels.try_emplace(name, graft_kernel_s{entry}).first->second;
  return GRAFT_OK;
}

graft_status KernelSlots::kernel_launch(graft_stream stream, graft_kernel kernel,
                                        const graft_launch* launch) {
  if (launch->grid[1] > 1 || launch->grid[2] > 1 || launch->group[0] > 1 || launch->group[1] > 1 ||
      launch->group[2] > 1) {
    return graft::fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: grid is n, 1, 1 and group 1, 1, 1");
  }
  if (launch->argument_count <= kFew) {
    std::array<chip_argument, kFew> few;
    return launch_with(stream, kernel, *launch, few.data());
  }
  std::vector<chip_argument> many(launch->argument_count);
  return launch_with(stream, kernel, *launch, many.data());
}

}  // namespace acme_driver
