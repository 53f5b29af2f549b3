// driver/operation.cpp: plans and runs operators by the vendor's own kernels.
//
// For the real chip: choose the kernel and its launch in operation_plan, which is called once for
// each layout; operation_execute runs at each call and only queues. Answer GRAFT_UNSUPPORTED for
// what the chip cannot do: the CPU computes it, and Graft counts that.
#include "operation.h"

#include <array>
#include <memory>
#include <string>

#include "handle.h"
#include "kernels/kernel.h"

struct graft_plan_s {
  const kernel* chosen;
  kernel_call call;
};

namespace acme_driver {

graft_status OperationSlots::operation_known(graft_device, const char* name) {
  return kernel_named(name) != nullptr ? GRAFT_OK : GRAFT_UNSUPPORTED;
}

graft_status OperationSlots::operation_plan(graft_device, const graft_operation* operation,
                                            graft_plan_needs* out_needs, graft_plan* out_plan) {
  const kernel* const found = kernel_named(operation->name);
  if (found == nullptr) return GRAFT_UNSUPPORTED;
  auto plan = std::make_unique<graft_plan_s>();
  plan->chosen = found;
  if (!kernel_takes(found, operation, &plan->call)) {
    return graft::fail(GRAFT_UNSUPPORTED,
                       "the kernel " + std::string(found->name) + " takes float32 only");
  }
  out_needs->workspace_bytes = 0;
  *out_plan = plan.release();
  return GRAFT_OK;
}

graft_status OperationSlots::operation_execute(graft_stream stream, graft_plan plan,
                                               const graft_launch* launch) {
  std::array<chip_argument, 1 + kMaxTensors + kMaxScalars> arguments;
  const uint32_t count = plan->call.tensor_count + plan->call.scalar_count;
  // The plan may end before the kernel runs: the launch copies the call.
  arguments[0] = {CHIP_CONSTANTS, reinterpret_cast<uintptr_t>(&plan->call), sizeof plan->call};
  for (uint32_t i = 0; i < count; ++i) {
    const graft_argument& from = launch->arguments[i];
    const bool address = from.kind == GRAFT_ARGUMENT_ADDRESS;
    arguments[1 + i] = {address ? CHIP_ADDRESS : CHIP_NUMBER, from.value, from.bytes};
  }
  return status_of(chip_launch(stream->queue.get(), plan->chosen->entry, 1, arguments.data(),
                               1 + count, launch->tag),
                   plan->chosen->name);
}

graft_status OperationSlots::plan_destroy(graft_plan plan) {
  delete plan;
  return GRAFT_OK;
}

}  // namespace acme_driver
