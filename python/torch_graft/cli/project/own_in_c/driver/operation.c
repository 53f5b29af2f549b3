/* driver/operation.c: plans and runs operators by the vendor's own kernels.
 *
 * For the real chip: choose the kernel and its launch in operation_plan, which is called once for
 * each layout; operation_execute runs at each call and only queues. Answer GRAFT_UNSUPPORTED for
 * what the chip cannot do: the CPU computes it, and Graft counts that. */
#include "operation.h"

#include <stdlib.h>

#include "driver.h"
#include "kernels/kernel.h"

struct graft_plan_s {
  const kernel* kernel;
  kernel_call call;
};

static graft_status operation_known(graft_device device, const char* name) {
  (void)device;
  return kernel_named(name) != NULL ? GRAFT_OK : GRAFT_UNSUPPORTED;
}

static graft_status operation_plan(graft_device device, const graft_operation* operation,
                                   graft_plan_needs* out_needs, graft_plan* out_plan) {
  (void)device;
  const kernel* found = kernel_named(operation->name);
  if (found == NULL) return GRAFT_UNSUPPORTED;
  graft_plan plan = malloc(sizeof *plan);
  if (plan == NULL) return failed(GRAFT_OUT_OF_MEMORY, "operation_plan: no host memory is left");
  plan->kernel = found;
  if (!kernel_takes(found, operation, &plan->call)) {
    free(plan);
    return failed(GRAFT_UNSUPPORTED, "the kernel %s takes float32 only", found->name);
  }
  out_needs->workspace_bytes = 0;
  *out_plan = plan;
  return GRAFT_OK;
}

static graft_status operation_execute(graft_stream stream, graft_plan plan,
                                      const graft_launch* launch) {
  chip_argument arguments[1 + kMaxTensors + kMaxScalars];
  const uint32_t count = plan->call.tensor_count + plan->call.scalar_count;
  /* The plan may end before the kernel runs: the launch copies the call. */
  arguments[0] = (chip_argument){CHIP_CONSTANTS, (uintptr_t)&plan->call, sizeof plan->call};
  for (uint32_t i = 0; i < count; ++i) {
    const graft_argument* from = &launch->arguments[i];
    const chip_argument_kind kind =
        from->kind == GRAFT_ARGUMENT_ADDRESS ? CHIP_ADDRESS : CHIP_NUMBER;
    arguments[1 + i] = (chip_argument){kind, from->value, from->bytes};
  }
  return status_of(
      chip_launch(stream->queue, plan->kernel->entry, 1, arguments, 1 + count, launch->tag),
      plan->kernel->name);
}

static graft_status plan_destroy(graft_plan plan) {
  free(plan);
  return GRAFT_OK;
}

const graft_ops_table operation_table = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), operation_known,
                                         operation_plan, operation_execute, plan_destroy};
