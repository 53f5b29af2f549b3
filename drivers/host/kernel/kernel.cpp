// drivers/host/kernel/kernel.cpp: launches kernels, the smallest on the calling thread.
#include "kernel.h"

#include <memory>
#include <string>

#include "graft/driver_slot.h"
#include "memory/arena.h"
#include "pool.h"
#include "stream/stream.h"

namespace graft::host {
namespace {

// More than any pointwise kernel takes; longer lists go to the heap.
constexpr uint32_t kArguments = 32;

bool translate(const Arena& arena, const graft_argument& from, graft_kernel_argument* to) {
  if (from.kind == GRAFT_ARGUMENT_SCALAR || from.value == 0) {
    to->bits = from.value;
    return from.kind <= GRAFT_ARGUMENT_SCALAR;
  }
  return from.kind == GRAFT_ARGUMENT_ADDRESS && arena.translate(from.value, &to->address);
}

struct Launch {
  void (*function)(const graft_kernel_argument* arguments, uint64_t begin, uint64_t end);
  uint64_t grid;
  std::unique_ptr<graft_kernel_argument[]> many;
  graft_kernel_argument few[kArguments];

  const graft_kernel_argument* arguments() const { return many != nullptr ? many.get() : few; }
  Outcome operator()() {
    auto items = [](void* context, uint64_t begin, uint64_t end) {
      const Launch& launch = *static_cast<Launch*>(context);
      launch.function(launch.arguments(), begin, end);
    };
    run_parallel(grid, items, this);
    return {};
  }
};

graft_status check(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (stream == nullptr || kernel == nullptr || launch == nullptr ||
      (launch->argument_count != 0 && launch->arguments == nullptr)) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: stream, kernel or arguments missing");
  }
  if (launch->grid[1] > 1 || launch->grid[2] > 1 || launch->group[0] > 1 || launch->group[1] > 1 ||
      launch->group[2] > 1) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "kernel_launch: this device takes grid {n, 1, 1} and group {1, 1, 1} only");
  }
  return GRAFT_OK;
}

graft_status launch_any(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (graft_status status = check(stream, kernel, launch); status != GRAFT_OK) return status;
  if (graft_status status = check_device(stream->device); status != GRAFT_OK) return status;
  if (strikes(Fault::kLaunch)) {
    return fail(GRAFT_LAUNCH_FAILED, "launch failed: planted by GRAFT_HOST_FAULTS");
  }
  if (strikes(Fault::kHangLaunch)) return stream->hang(launch->tag);
  if (launches_are_dropped() || launch->grid[0] == 0) return stream->admit();
  Launch command = {kernel->function, launch->grid[0], nullptr, {}};
  graft_kernel_argument* arguments = command.few;
  if (launch->argument_count > kArguments) {
    command.many = std::make_unique<graft_kernel_argument[]>(launch->argument_count);
    arguments = command.many.get();
  }
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const graft_argument& argument = launch->arguments[i];
    if (!translate(*stream->device->arena, argument, &arguments[i])) {
      return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: argument " + std::to_string(i) +
                                              " is neither a scalar nor an address of a device");
    }
    if (argument.kind == GRAFT_ARGUMENT_ADDRESS) bytes += argument.bytes;
  }
  if (simulated()) [[unlikely]] {
    return stream->submit_timed(launch->tag, bytes, simulation().kernel_ns(bytes),
                                std::move(command));
  }
  // One work-item is small by the kernels' own choice of grid.
  return stream->submit(launch->tag, launch->grid[0] == 1 ? 0 : bytes, std::move(command));
}

}  // namespace

graft_status KernelSlots::kernel_launch(graft_stream stream, graft_kernel kernel,
                                        const graft_launch* launch) {
  bool plain = detours.load(std::memory_order_relaxed) == 0 && stream != nullptr &&
               kernel != nullptr && launch != nullptr && launch->grid[0] == 1 &&
               launch->grid[1] <= 1 && launch->grid[2] <= 1 && launch->group[0] <= 1 &&
               launch->argument_count <= kArguments && stream->queue.idle();
  if (!plain) return launch_any(stream, kernel, launch);
  graft_kernel_argument arguments[kArguments];
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    if (!translate(*stream->device->arena, launch->arguments[i], &arguments[i])) {
      return launch_any(stream, kernel, launch);
    }
  }
  kernel->function(arguments, 0, 1);
  return GRAFT_OK;
}

}  // namespace graft::host
