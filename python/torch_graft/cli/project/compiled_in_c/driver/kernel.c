/* driver/kernel.c: launches kernels.
 *
 * For the real chip: its launch. Dialect "c" has one-dimensional grids of single work-items; a
 * GPU-like chip passes on grid, group and the local memory of GRAFT_ARGUMENT_LOCAL. */
#include "kernel.h"

#include <stdlib.h>

#include "driver.h"

enum { kFew = 32 };

static graft_status launch_with(graft_stream stream, graft_kernel kernel,
                                const graft_launch* launch, chip_argument* arguments) {
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const graft_argument* from = &launch->arguments[i];
    if (from->kind == GRAFT_ARGUMENT_LOCAL) {
      return failed(GRAFT_INVALID_ARGUMENT, "kernel_launch: the chip has no local memory");
    }
    arguments[i].kind = from->kind == GRAFT_ARGUMENT_ADDRESS ? CHIP_ADDRESS : CHIP_NUMBER;
    arguments[i].value = from->value;
    arguments[i].bytes = from->bytes;
  }
  return status_of(chip_launch(stream->queue, kernel->entry, launch->grid[0], arguments,
                               launch->argument_count, launch->tag),
                   "kernel_launch");
}

graft_status kernel_launch(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (launch->grid[1] > 1 || launch->grid[2] > 1 || launch->group[0] > 1 || launch->group[1] > 1 ||
      launch->group[2] > 1) {
    return failed(GRAFT_INVALID_ARGUMENT, "kernel_launch: grid is n, 1, 1 and group 1, 1, 1");
  }
  chip_argument few[kFew];
  if (launch->argument_count <= kFew) return launch_with(stream, kernel, launch, few);
  chip_argument* many = malloc(launch->argument_count * sizeof *many);
  if (many == NULL) return failed(GRAFT_OUT_OF_MEMORY, "kernel_launch: no host memory is left");
  const graft_status status = launch_with(stream, kernel, launch, many);
  free(many);
  return status;
}
